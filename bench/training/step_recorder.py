"""The tables of one cell while it trains: rows from updates and evaluations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import numpy as np

from vcpo_bench.bench.cells.parquet_table import RecordTable, Row, includes
from vcpo_bench.bench.feeding.source import StepInput
from vcpo_bench.bench.training.evaluation import Evaluation
from vcpo_bench.bench.training.learner_step import LearnerStep
from vcpo_bench.bench.training.sample_rows import sample_rows
from vcpo_bench.records import (
    EPISODES,
    EPISODES_FILE,
    EVALS,
    EVALS_FILE,
    EVENTS,
    EVENTS_FILE,
    LAGS,
    LAGS_FILE,
    SAMPLES,
    SAMPLES_FILE,
    STEPS_FILE,
    Level,
)
from vcpo_bench.records.diagnostic import Reported
from vcpo_bench.records.step_facts import StepFacts
from vcpo_bench.records.steps import DIAGNOSTICS, STEPS
from vcpo_bench.records.steps.timing import SPENT

MAX_SKIPPED = 3
"""Updates in a row whose evidence is not finite before a cell ends as `nan`."""
SAMPLES_EVERY = 10
"""At level `diagnostics` the trajectories of every tenth update are recorded; at `full`, of all."""
_REPORTED = {name for name, one in DIAGNOSTICS.items() if isinstance(one, Reported)}


class StepRecorder:
    """The tables of one cell while it runs.

    Args:
        level: Record level.
        events: Whether there is a table of events.
        waits: Whether `seconds_wait` is real time; under a virtual clock it is not.
    """

    def __init__(self, level: Level, events: bool = False, waits: bool = False) -> None:
        self.level: Level = level
        self._spent = [name for name in SPENT if waits or name != "seconds_wait"]
        self.tables = {
            STEPS_FILE: RecordTable(STEPS, level),
            EVALS_FILE: RecordTable(EVALS, level),
            LAGS_FILE: RecordTable(LAGS, level),
            EPISODES_FILE: RecordTable(EPISODES, level),
        }
        if events:
            self.tables[EVENTS_FILE] = RecordTable(EVENTS, level)
        if includes(level, "diagnostics"):
            self.tables[SAMPLES_FILE] = RecordTable(SAMPLES, level)
        self._columns = [one for one in DIAGNOSTICS.values() if includes(level, one.level)]

    @property
    def updates(self) -> int:
        """Number of updates recorded so far."""
        return len(self.tables[STEPS_FILE])

    def status(self, updates: int) -> str:
        """`completed` after as many updates, `nan`, or empty while there is something left to do."""
        newest = self.tables[STEPS_FILE].columns["nonfinite"][-MAX_SKIPPED:]
        if len(newest) == MAX_SKIPPED and all(newest):
            return "nan"
        return "completed" if self.updates >= updates else ""

    def update(self, step: int, given: StepInput, done: LearnerStep, lr: float) -> float:
        """Record one update.

        Args:
            step: Number of updates applied before it.
            given: What it consumed.
            done: What the learner did.
            lr: Learning rate before the method's step scale.

        Returns:
            The raw ESS ratio of its batch.

        Raises:
            KeyError: The source reports something that is no column.
        """
        began = perf_counter()
        facts = _facts(step, given, done, lr)
        row = {one.name: one.compute(facts) for one in self._columns}
        if SAMPLES_FILE in self.tables and (step % SAMPLES_EVERY == 0 or self.level == "full"):
            for sample in sample_rows(facts, given.batch, done, full=self.level == "full"):
                self.tables[SAMPLES_FILE].append(sample)
        for lag in _lag_rows(facts):
            self.tables[LAGS_FILE].append(lag)
        for event in given.events:
            self.tables[EVENTS_FILE].append(event)
        row["seconds_record"] = perf_counter() - began
        self.tables[STEPS_FILE].append(row)
        ess = row["ess_ratio"]
        assert isinstance(ess, float)
        return ess

    def evaluation(self, step: int, result: Evaluation, seconds: float) -> None:
        """Record an evaluation made after `step` updates."""
        self.tables[EVALS_FILE].append(
            {
                "step": step,
                "greedy_reward": result.greedy_reward,
                "sampled_reward": result.sampled_reward,
                "sampled_reward_easy": result.sampled_reward_easy,
                "sampled_reward_hard": result.sampled_reward_hard,
                "entropy": result.entropy,
                "seconds": seconds,
            }
        )
        for prompt, (text, reward) in enumerate(result.samples):
            self.tables[EPISODES_FILE].append({"step": step, "prompt": prompt, "text": text, "reward": reward})

    def seconds(self) -> float:
        """Work recorded so far, in seconds, including sessions before an interruption."""
        steps, evals = self.tables[STEPS_FILE].columns, self.tables[EVALS_FILE].columns
        phases = [steps[name] for name in self._spent]
        return float(sum(value for values in (*phases, evals["seconds"]) for value in values if value is not None))

    def timings(self) -> tuple[tuple[float, float], float]:
        """Fastest seconds so far: (sampling, the rest of an update), and of an evaluation."""
        steps = self.tables[STEPS_FILE].columns
        rest = zip(steps["seconds_score"], steps["seconds_update"], steps["seconds_record"], strict=True)
        fastest = (min(steps["seconds_sample"]), min(map(sum, rest)))
        return fastest, min(self.tables[EVALS_FILE].columns["seconds"])

    def write(self, folder: Path) -> None:
        """Write every table into `folder`."""
        for name, table in self.tables.items():
            table.write(folder / name)

    def read(self, folder: Path) -> None:
        """Load the tables that `write` left."""
        for name, table in self.tables.items():
            table.read(folder / name)


def _facts(step: int, given: StepInput, done: LearnerStep, lr: float) -> StepFacts:
    batch = given.batch
    reported = {
        "step": step,
        "sampled_reward": given.sampled_reward,
        "batch_reward": float(batch.reward.mean()),
        "grad_norm": done.made.norm,
        "grad_norm_clipped": done.made.clipped,
        "step_scale": done.made.scale,
        "lr": lr * done.made.scale,
        "filling": given.filling,
        "nonfinite": done.nonfinite,
        "seconds_sample": given.seconds_sample,
        "seconds_score": done.seconds_score,
        "seconds_update": done.seconds_update,
        **given.facts,
    }
    if unknown := reported.keys() - _REPORTED:
        raise KeyError(f"not columns of this table: {sorted(unknown)}")
    return StepFacts(
        step=step,
        log_ratio=(done.logp.double() - batch.behavior_logp.double()).flatten(0, 1).numpy(),
        mask=batch.mask.flatten(0, 1).numpy(),
        version=batch.version.flatten(0, 1).numpy(),
        entropy=done.entropy.flatten(0, 1).numpy(),
        reported=reported,
        measured=done.made.measured,
        method_metrics=done.update.metrics if done.update else {},
        logp=done.logp.flatten(0, 1).numpy(),
        tokens_drawn=batch.responses.flatten(0, 1).numpy(),
        reward=batch.reward.numpy(),
        episodes=None if batch.episodes is None else batch.episodes.flatten(0, 1).numpy(),
    )


def _lag_rows(facts: StepFacts) -> Iterator[Row]:
    """How many consumed trajectories and tokens had each lag."""
    trajectories, tokens = np.bincount(facts.lags), np.bincount(facts.token_lags)
    trajectories.resize(max(len(trajectories), len(tokens)), refcheck=False)
    tokens.resize(len(trajectories), refcheck=False)
    for lag in np.flatnonzero(trajectories + tokens).tolist():
        counts = {"trajectories": int(trajectories[lag]), "tokens": int(tokens[lag])}
        yield {"step": facts.step, "lag": lag, **counts}
