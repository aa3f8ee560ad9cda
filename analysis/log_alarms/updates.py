"""A logged run as the table of updates that signals are computed from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.analysis.logs.run import LoggedRun, Series
from vcpo_bench.analysis.monitoring.calibration import REWARD_RANGES, RewardRange, lie_in

Array = NDArray[np.float64]

LOGGED = {"sampled_reward": "reward", "batch_reward": "reward", "lr": "lr"}
"""Columns of `records.steps.STEPS` that logs have under another name of ours; the rest is called alike."""
EXACT = "exact"


class LoggedUpdates:
    """Some columns of a run side by side, as `monitoring.signal.Updates`.

    Attributes:
        steps: The run's own step of every row, ascending, shape [S]; a value that was not logged there is NaN.
    """

    def __init__(self, columns: Mapping[str, Series]) -> None:
        axes = [one.steps for one in columns.values()]
        self.steps: Array = np.unique(np.concatenate(axes)) if axes else np.empty(0)
        self._values = {name: self._placed(one) for name, one in columns.items()}

    def _placed(self, series: Series) -> Array:
        values = np.full(self.steps.size, np.nan)
        values[np.searchsorted(self.steps, series.steps)] = series.values
        return np.where(np.isfinite(values), values, np.nan)

    def __len__(self) -> int:
        return int(self.steps.size)

    def __contains__(self, name: object, /) -> bool:
        return name in self._values

    def __getitem__(self, name: str, /) -> Array:
        return self._values[name]


def updates_of(
    run: LoggedRun, wanted: Iterable[str], inputs: Mapping[str, str], reward: RewardRange
) -> tuple[LoggedUpdates, dict[str, str]]:
    """The columns a detector may read: what it was tuned on, and nothing that only resembles it.

    Args:
        run: Of `read_run`.
        wanted: Columns of `records.steps.STEPS`.
        inputs: By column, the logged name the detector was tuned on, where that was not the exact quantity.
        reward: Where the rewards lay that it was tuned on.

    Returns:
        The table, and for each column that is there but must not be used, why.
    """
    columns: dict[str, Series] = {}
    refused: dict[str, str] = {}
    for name in wanted:
        series = run.series.get(LOGGED.get(name, name))
        if series is None:
            continue
        why = _mismatch(name, series, inputs, reward)
        if why:
            refused[name] = why
        else:
            columns[name] = series
    return LoggedUpdates(columns), refused


def lengths_at(run: LoggedRun, steps: Array) -> Array:
    """Mean tokens of the responses at steps [S], the last that were logged until there; NaN where none were."""
    series = run.series.get("length_mean")
    if series is None or series.source.tag != EXACT:
        return np.full(steps.shape, np.nan)
    known, values = series.finite
    return np.concatenate([[np.nan], values])[np.searchsorted(known, steps, side="right")]


def reward_range(values: Array) -> RewardRange:
    """The narrowest range that holds these rewards."""
    finite = values[np.isfinite(values)]
    for name in REWARD_RANGES:
        if finite.size and lie_in(finite, name):
            return name
    return "any"


def _mismatch(name: str, series: Series, inputs: Mapping[str, str], reward: RewardRange) -> str:
    tuned_on, here = inputs.get(name, EXACT), series.logged_as[0]
    if tuned_on != EXACT and tuned_on != here:
        return f"it was tuned on {tuned_on}, this log has {here}"
    if tuned_on == EXACT and series.source.tag != EXACT:
        return f"{here} is not the exact quantity ({series.source.tag})"
    if LOGGED.get(name) == "reward" and reward in REWARD_RANGES:
        low, high = REWARD_RANGES[reward]
        _, values = series.finite
        if not lie_in(values, reward):
            seen = f"{values.min():.3g} to {values.max():.3g}"
            return f"it was tuned on rewards from {low:g} to {high:g}, these run from {seen}"
    return ""
