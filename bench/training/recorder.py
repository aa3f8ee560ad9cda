"""Turns what happened in an update into rows of the tables of `records`."""

from __future__ import annotations

import json
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from vcpo_bench.bench.cells.parquet_table import RecordTable, Row, includes
from vcpo_bench.bench.feeding.source import StepInput
from vcpo_bench.bench.training.diagnostics import Floats, kish_ess_ratio, lag_metrics, weight_metrics
from vcpo_bench.bench.training.evaluation import Evaluation
from vcpo_bench.bench.training.learner import LearnerStep
from vcpo_bench.bench.trajectories import Trajectories
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
    STEPS,
    STEPS_FILE,
    Level,
)

SAMPLES_EVERY = 10
"""At level `diagnostics` the trajectories of every tenth update are kept; at `full`, of all."""


class Recorder:
    """The tables of one cell while it runs.

    Args:
        level: How much is recorded.
        events: Keep the events of an asynchronous run as well.
    """

    def __init__(self, level: Level, events: bool = False) -> None:
        self.level = level
        self.tables = {
            STEPS_FILE: RecordTable(STEPS, level),
            EVALS_FILE: RecordTable(EVALS, level),
            LAGS_FILE: RecordTable(LAGS, level),
        }
        if events:
            self.tables[EVENTS_FILE] = RecordTable(EVENTS, level)
        if includes(level, "diagnostics"):
            self.tables[SAMPLES_FILE] = RecordTable(SAMPLES, level)
            self.tables[EPISODES_FILE] = RecordTable(EPISODES, level)

    @property
    def updates(self) -> int:
        """Updates recorded so far."""
        return len(self.tables[STEPS_FILE])

    def update(self, step: int, given: StepInput, done: LearnerStep, lr: float) -> float:
        """Record update number `step`; the raw ESS ratio of its batch."""
        began = perf_counter()
        batch = given.batch
        mask = batch.mask.flatten(0, 1).numpy()
        log_ratio = (done.logp.double() - batch.behavior_logp.double()).flatten(0, 1).numpy()
        weights = weight_metrics(log_ratio, mask)
        lag_columns, lags = lag_metrics(batch.version.flatten(0, 1).numpy(), mask, step)
        row: dict[str, Any] = {
            "step": step,
            "sampled_reward": given.sampled_reward,
            "batch_reward": float(batch.reward.mean()),
            "entropy": float(done.entropy.flatten(0, 1).numpy()[mask].mean()),
            "grad_norm": done.grad_norm,
            "grad_norm_clipped": done.grad_norm_clipped,
            "step_scale": done.step_scale,
            "lr": lr * done.step_scale,
            "nonfinite": done.nonfinite,
            "seconds_sample": given.seconds_sample,
            "seconds_score": done.seconds_score,
            "seconds_update": done.seconds_update,
            **weights,
            **lag_columns,
            "filling": given.filling,
            **given.facts,
            **_method_metrics(done),
        }
        if includes(self.level, "diagnostics"):
            row["token_ess_ratio"] = kish_ess_ratio(log_ratio[mask])
            row["grad_cosine"], row["head_grad_norm"] = done.grad_cosine, done.head_grad_norm
            if step % SAMPLES_EVERY == 0 or self.level == "full":
                self._samples(step, batch, done, log_ratio)
        for lag, (trajectories, tokens) in lags.items():
            self.tables[LAGS_FILE].append({"step": step, "lag": lag, "trajectories": trajectories, "tokens": tokens})
        for event in given.events:
            self.tables[EVENTS_FILE].append(event)
        row["seconds_record"] = perf_counter() - began
        self.tables[STEPS_FILE].append(row)
        return weights["ess_ratio"]

    def evaluation(self, step: int, result: Evaluation, seconds: float) -> None:
        """Record an evaluation made after `step` updates."""
        self.tables[EVALS_FILE].append(
            {
                "step": step,
                "greedy_reward": result.greedy_reward,
                "sampled_reward": result.sampled_reward,
                "entropy": result.entropy,
                "seconds": seconds,
            }
        )
        if includes(self.level, "diagnostics"):
            for prompt, (text, reward) in enumerate(result.episodes):
                self.tables[EPISODES_FILE].append({"step": step, "prompt": prompt, "text": text, "reward": reward})

    def seconds(self) -> float:
        """Work recorded so far, in seconds, also that of sessions before an interruption."""
        steps, evals = self.tables[STEPS_FILE].columns, self.tables[EVALS_FILE].columns
        phases = [values for name, values in steps.items() if name.startswith("seconds_")]
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
        """Take up the tables that `write` left."""
        for name, table in self.tables.items():
            table.read(folder / name)

    def _samples(self, step: int, batch: Trajectories, done: LearnerStep, log_ratio: Floats) -> None:
        for row in _sample_rows(step, batch, done, log_ratio, full=self.level == "full"):
            self.tables[SAMPLES_FILE].append(row)


def _method_metrics(done: LearnerStep) -> dict[str, float | None]:
    names = ("share_clipped", "share_masked", "ess_ratio_used")
    found = done.update.metrics if done.update else {}
    values = {name: float(found[name]) for name in names if name in found}
    return {name: None if np.isnan(value) else value for name, value in values.items()}


def _sample_rows(step: int, batch: Trajectories, done: LearnerStep, log_ratio: Floats, full: bool) -> list[Row]:
    mask = batch.mask.flatten(0, 1).numpy()
    ratio = np.where(mask, log_ratio, 0.0)
    length = mask.sum(-1)
    reward = batch.reward.flatten().numpy()
    version = batch.version.flatten(0, 1).numpy()
    coefficients = done.update.coefficients.flatten(0, 1).sum(-1).tolist() if done.update else [None] * len(reward)
    norms = done.score_norm_sq.flatten().tolist() if done.score_norm_sq is not None else [None] * len(reward)
    responses = batch.mask.shape[1]
    origin = batch.origins().tolist()
    seconds = batch.seconds.flatten(0, 1).tolist() if batch.seconds is not None else [(None, None)] * len(reward)
    rows: list[Row] = []
    for i in range(len(reward)):
        row: dict[str, Any] = {
            "step": step,
            "batch": origin[i // responses][0],
            "trajectory": origin[i // responses][1] * responses + i % responses,
            "prompt": origin[i // responses][1],
            "reward": float(reward[i]),
            "length": int(length[i]),
            "log_weight": float(ratio[i].sum()),
            "kl_k3": float((np.expm1(np.minimum(ratio[i], 80.0)) - ratio[i]).sum() / max(length[i], 1)),
            "version_oldest": int(version[i][mask[i]].min()),
            "version_newest": int(version[i][mask[i]].max()),
            "coefficient_sum": coefficients[i],
            "seconds_in_flight": seconds[i][0],
            "seconds_in_queue": seconds[i][1],
        }
        if full:
            row["score_norm_sq"] = norms[i]
            row["log_ratios"] = json.dumps([round(v, 6) for v in ratio[i][mask[i]].tolist()])
        rows.append(row)
    return rows
