"""Runs whose fate is known, side by side: cells of results folders, or logs of any trainer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vcpo_bench.analysis.diagnosis.diagnosis import Outcome
from vcpo_bench.analysis.diagnosis.outcome import read_outcome
from vcpo_bench.analysis.log_alarms.updates import EXACT, LOGGED, LoggedUpdates, lengths_at, reward_range, updates_of
from vcpo_bench.analysis.logs import LoggedRun, Series
from vcpo_bench.analysis.logs.names import Name, columns
from vcpo_bench.analysis.monitoring.calibration import RewardRange
from vcpo_bench.analysis.monitoring.signal import all_signals
from vcpo_bench.analysis.prediction.panel import Flags, Panel, build_panel
from vcpo_bench.analysis.results import Results
from vcpo_bench.errors import UsageError

Array = NDArray[np.float64]

LEAST_LAG = 2
"""Runs at a smaller lag never count as healthy: they have nothing to be alarmed about."""
_STRIDE = 10
_EVENTS = {"collapsed": "collapse", "dip": "transient dip", "stall": "stall", "healthy": "healthy"}


@dataclass(frozen=True)
class CalibrationRuns:
    """What detectors are calibrated on.

    Attributes:
        panel: The runs, with their signals at every update and the moment of failure.
        configuration: Number of the configuration of each run, shape [N].
        groups: What else runs may be held out by: the task; one value where that is not known. Shape [N].
        healthy: Runs that count as healthy: judged `healthy`, at a lag of `LEAST_LAG` or more, shape [N].
        dipped: Runs with a transient dip, at the same lags, shape [N].
        called: Whether the verdict on the training reward alone is "collapsed", shape [N]; NaN: it cannot tell.
        inputs: By column, the logged name that does not hold the exact quantity.
        reward: Where the rewards lie.
        lengths: The shortest and longest mean length of responses in an update of healthy runs, in whole tokens; None:
            not recorded.
        name: For people.
    """

    panel: Panel
    configuration: NDArray[np.int64]
    groups: NDArray[np.object_]
    healthy: Flags
    dipped: Flags
    called: Array
    inputs: dict[str, str]
    reward: RewardRange
    lengths: tuple[float, float] | None
    name: str


def runs_of_results(results: Results, name: str) -> CalibrationRuns:
    """The cells of results folders."""
    panel = build_panel(results)
    runs = panel.runs
    lagging = runs["staleness"].to_numpy() >= LEAST_LAG
    healthy = (runs["event"] == "healthy").to_numpy() & lagging
    steps = results.step_columns("length_mean")
    lengths = steps.loc[steps["key"].isin(runs["key"][healthy]), "length_mean"]
    tables = dict(results.step_columns("batch_reward").groupby("key", sort=False)[["step", "batch_reward"]].__iter__())
    called = np.array([_called(tables[key]) for key in runs["key"]])
    rewards = results.step_columns("batch_reward")["batch_reward"].to_numpy(dtype=np.float64)
    return CalibrationRuns(
        panel=panel,
        configuration=panel.cluster,
        groups=runs["task"].to_numpy(dtype=object),
        healthy=healthy,
        dipped=(runs["event"] == "transient dip").to_numpy() & lagging,
        called=called,
        inputs={},
        reward=reward_range(rewards),
        lengths=_ends(lengths.to_numpy(dtype=np.float64)),
        name=name,
    )


def runs_of_logs(logs: Sequence[LoggedRun], name: str) -> CalibrationRuns:
    """Logs of other trainers; each is a configuration of its own, because a log does not say which it shares.

    Raises:
        UsageError: No run could be judged.
    """
    wanted = sorted({column for signal in all_signals().values() for column in signal.columns})
    inputs = _inputs(logs, wanted)
    judged = [(run, read_outcome(run)) for run in logs]
    kept = [(run, outcome) for run, outcome in judged if outcome.verdict in _EVENTS]
    if not kept:
        raise UsageError(f"none of the {len(logs)} runs can be judged: {judged[0][1].reason}")
    tables = [updates_of(run, wanted, inputs, "any")[0] for run, _ in kept]
    events = np.array([_EVENTS[outcome.verdict] for _, outcome in kept])
    onset = np.array([_onset(table, outcome) for (_, outcome), table in zip(kept, tables, strict=True)])
    lagging = np.array([_largest_lag(run) >= LEAST_LAG for run, _ in kept])
    healthy = (events == "healthy") & lagging
    lengths = [lengths_at(kept[row][0], tables[row].steps) for row in np.flatnonzero(healthy)]
    rewards = [run.series["reward"].values for run, _ in kept if "reward" in run.series]
    return CalibrationRuns(
        panel=Panel(
            runs=pd.DataFrame({"key": [run.path for run, _ in kept], "event": events, "collapsed": np.isfinite(onset)}),
            values=_values(tables),
            onset=onset,
            found=onset,
            end=np.array([len(one) for one in tables], dtype=np.float64),
            stride=_STRIDE,
        ),
        configuration=np.arange(len(kept)),
        groups=np.full(len(kept), "", dtype=object),
        healthy=healthy,
        dipped=(events == "transient dip") & lagging,
        called=np.array([_from_training_reward(run) for run, _ in kept]),
        inputs=inputs,
        reward=reward_range(np.concatenate(rewards)) if rewards else "any",
        lengths=_ends(np.concatenate([np.empty(0), *lengths])),
        name=name,
    )


def _ends(lengths: Array) -> tuple[float, float] | None:
    known = lengths[np.isfinite(lengths)]
    return (float(np.floor(known.min())), float(np.ceil(known.max()))) if known.size else None


def _values(tables: Sequence[LoggedUpdates]) -> dict[str, Array]:
    """Every signal of every run, shape [N, T]; NaN after the end of a run."""
    length = max(map(len, tables))
    values = {signal: np.full((len(tables), length), np.nan) for signal in all_signals()}
    for row, table in enumerate(tables):
        for signal, formula in all_signals().items():
            values[signal][row, : len(table)] = formula.of(table)
    return values


def _onset(table: LoggedUpdates, outcome: Outcome) -> float:
    """Row of a run's table where it fell; infinite: it did not."""
    return float(np.searchsorted(table.steps, outcome.onset)) if outcome.verdict == "collapsed" else float("inf")


def _inputs(logs: Sequence[LoggedRun], wanted: Sequence[str]) -> dict[str, str]:
    """What each column was logged as where that is not the exact quantity: the name in the first log that has it."""
    found: dict[str, str] = {}
    for name in wanted:
        first = next((run.series[one] for run in logs if (one := LOGGED.get(name, name)) in run.series), None)
        if first is not None and first.source.tag != EXACT:
            found[name] = first.logged_as[0]
    return found


def _largest_lag(run: LoggedRun) -> float:
    """The largest lag logged; infinite where none was: the run may have any."""
    series = run.series.get("lag_max") or run.series.get("lag_mean")
    return float(np.nanmax(series.values)) if series is not None and series.finite[1].size else float("inf")


def _called(table: pd.DataFrame) -> float:
    steps = table["step"].to_numpy(dtype=np.float64)
    values = table["batch_reward"].to_numpy(dtype=np.float64)
    source = Name("batch_reward", "reward", "exact")
    series = Series(columns()["reward"], source, ("batch_reward",), steps, values)
    return _from_training_reward(LoggedRun("", "vcpo-bench", "", "", "", {"reward": series}))


def _from_training_reward(run: LoggedRun) -> float:
    """1: the verdict is collapsed where nothing but the training reward is known; 0: another; NaN: it cannot tell."""
    alone = {name: one for name, one in run.series.items() if name == "reward"}
    verdict = read_outcome(replace(run, series=alone)).verdict
    return float("nan") if verdict == "cannot tell" else float(verdict == "collapsed")
