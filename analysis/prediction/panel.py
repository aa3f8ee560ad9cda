"""All judged runs side by side: when each failed, until when it was watched, and every signal at every update."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vcpo_bench.analysis.collapse.rule import UNDECIDED, events
from vcpo_bench.analysis.monitoring.signal import Signal, all_signals
from vcpo_bench.analysis.monitoring.trailing import streamed_mean, streamed_mean_at
from vcpo_bench.analysis.prediction.signal_values import each_signal, signal_values
from vcpo_bench.analysis.prediction.twins import HISTORY, joined, twin_groups
from vcpo_bench.analysis.results import Results
from vcpo_bench.analysis.series import in_order

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

LEADS = (5, 10, 20, 50, 100)
"""Updates between the landmark and the onset of failure: the evaluation that first finds the run down."""
PRIMARY_LEAD = 20
"""The lead of the primary endpoint."""
LEAST_RUNS = 15
"""A number that rests on fewer failed or fewer healthy held-out runs than this is not given."""
WINDOW = 5
"""Updates in the trailing mean of a score whose window is not tuned."""
MATCH = ("task", "regime", "staleness")
"""What a control shares with its case, besides the step."""
CONFIGURATION = (*MATCH, "method", "lr")
"""What runs share that differ in their seed only. They tend to share their fate too, so these are resampled."""
LEAST_CONFIGURATIONS = 8
"""Nor is one that rests on failed, or on healthy, runs of fewer configurations: a resample of them says nothing."""

TOO_FEW = "too few"
NEEDED = f"at least {LEAST_RUNS} of each, from at least {LEAST_CONFIGURATIONS} configurations, are needed"
"""What a number has to rest on, in words."""
_PATIENCE_STRIDES = 2  # a run still undecided at its end was surely up this many evaluations earlier


@dataclass(frozen=True)
class Panel:
    """Runs x updates.

    Attributes:
        runs: One row per judged run: `key`, `task`, `method`, `regime`, `staleness`, `lr`, `seed`,
            `event`, `failed`, `steps_done`.
        values: Per signal, its values [N, S] at each update; NaN where it says nothing or the run has ended.
        onset: Updates applied before the evaluation that first found the run down [N]; infinite: it never failed.
        found: The same on the grid of evaluations [N]: for a run that ended as nan, the last evaluation before.
        end: Updates applied before the last evaluation that still says what became of the run [N].
        stride: Updates between evaluations.
        twins: Number of the group of runs [N] that are one run until shortly before a failure, of
            `analysis.prediction.twins.twin_groups`; None: no run has a twin.
    """

    runs: pd.DataFrame
    values: Mapping[str, Array]
    onset: Array
    found: Array
    end: Array
    stride: int
    twins: NDArray[np.int64] | None = None
    _strata: dict[tuple[str, ...], NDArray[np.int64]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    @cached_property
    def failed(self) -> Flags:
        """Which runs failed [N]."""
        return np.isfinite(self.onset)

    @cached_property
    def healthy(self) -> Flags:
        """Which runs are known never to have failed [N]; one that an alarm stopped is neither."""
        return ~self.failed & ~self.runs["event"].isin(UNDECIDED).to_numpy(dtype=bool)

    @property
    def length(self) -> int:
        """S, the updates of the longest run."""
        return int(next(iter(self.values.values())).shape[1])

    def scores(self, name: str, window: int = WINDOW) -> Array:
        """Trailing mean [N, S] of a signal, as `analysis.monitoring.detectors.Detector.scores` gives it."""
        return streamed_mean(self.values[name], window)

    def scores_at(self, name: str, row: NDArray[np.int64]) -> Array:
        """`scores(name)[:, row].T` [C, N], without the others: all of every signal would not fit in memory."""
        rows, place = np.unique(row, return_inverse=True)
        every = np.arange(len(self.runs))
        return streamed_mean_at(self.values[name], every[None, :], rows[:, None], WINDOW)[place]

    def recorded(self) -> list[str]:
        """Signals that say something about at least one run."""
        return [name for name, values in self.values.items() if np.isfinite(values).any()]

    def strata(self, columns: Sequence[str]) -> NDArray[np.int64]:
        """Number of the group of runs [N] that agree in these columns of `runs`."""
        if not columns:
            return np.zeros(len(self.runs), dtype=np.int64)
        key = tuple(columns)
        if key not in self._strata:
            groups = self.runs.groupby(list(columns), sort=True, dropna=False).ngroup()
            self._strata[key] = np.asarray(groups, dtype=np.int64)
        return self._strata[key]

    @property
    def configuration(self) -> NDArray[np.int64]:
        """Number of the configuration of every run [N]."""
        return self.strata(CONFIGURATION)

    @cached_property
    def cluster(self) -> NDArray[np.int64]:
        """Number of what is independent, and hence resampled [N]: configurations, those that share twins as one."""
        return self.configuration if self.twins is None else joined(self.configuration, self.twins)

    def enough(self, failed: NDArray[np.int64], healthy: NDArray[np.int64]) -> bool:
        """May a number rest on these failed and these healthy runs, given by their distinct row numbers?"""
        return all(
            runs.size >= LEAST_RUNS and np.unique(self.cluster[runs]).size >= LEAST_CONFIGURATIONS
            for runs in (failed, healthy)
        )


def build_panel(results: Results, signals: Mapping[str, Signal] | None = None) -> Panel:
    """Judge every run by the rule of `analysis.collapse.rule` and lay out its signals.

    Runs to which the rule does not apply, and runs without a table of updates, are left out of `runs`; the caller
    counts them.

    Args:
        results: The runs.
        signals: What to compute from their tables of updates; None: every signal.
    """
    bare = _judged(results)
    return bare.with_values(signal_values(results, list(bare.runs["key"]), bare.updates, signals or all_signals()))


def panels_by_signal(results: Results) -> Iterator[Panel]:
    """`build_panel` with one signal at a time, for what looks at each signal alone: much less memory."""
    bare = _judged(results)
    signals = all_signals()
    for name, values in each_signal(results, list(bare.runs["key"]), bare.updates, signals):
        yield bare.with_values({name: values})


class _Judged(NamedTuple):
    """A panel that has no signals yet; `updates` are those of the longest run."""

    runs: pd.DataFrame
    onset: Array
    found: Array
    end: Array
    stride: int
    updates: int
    twins: NDArray[np.int64]

    def with_values(self, values: Mapping[str, Array]) -> Panel:
        return Panel(self.runs, values, self.onset, self.found, self.end, self.stride, self.twins)


def _judged(results: Results) -> _Judged:
    verdicts = events(results)
    lengths = results.step_columns().groupby("key", sort=False)["step"].max()
    judged = verdicts[(verdicts["event"] != "not applicable") & verdicts["key"].isin(lengths.index)]
    judged = judged.sort_values("key", kind="stable").reset_index(drop=True)
    stride = _stride(results.evals)
    onset, found, end = _times(judged, stride)
    length = int(lengths.max()) + 1 if len(lengths) else 1
    columns = ["key", "task", "method", "regime", "staleness", "lr", "seed", "event", "collapsed", "steps_done"]
    twins = twin_groups(in_order(results.step_columns(*HISTORY)), judged, np.maximum(found - PRIMARY_LEAD, LEADS[0]))
    return _Judged(judged[columns], onset, found, end, stride, length, twins)


def _stride(evals: pd.DataFrame) -> int:
    gaps = evals.sort_values(["key", "step"]).groupby("key")["step"].diff()
    gaps = gaps[gaps > 0]
    return int(gaps.median()) if len(gaps) else 1


def _times(verdicts: pd.DataFrame, stride: int) -> tuple[Array, Array, Array]:
    failed = verdicts["collapsed"].fillna(False).to_numpy(dtype=bool)
    onset = np.where(failed, verdicts["onset"].to_numpy(dtype=np.float64), np.inf)
    found = np.where(failed, np.floor(onset / stride) * stride, np.inf)
    end = np.nan_to_num(verdicts["last_step"].to_numpy(dtype=np.float64), nan=-1.0)
    undecided = verdicts["unresolved"].fillna(False).to_numpy(dtype=bool) & ~failed
    return onset, found, np.where(undecided, end - _PATIENCE_STRIDES * stride, end)
