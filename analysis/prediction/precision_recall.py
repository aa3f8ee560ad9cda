"""Precision and recall over all landmarks at their natural prevalence, with scores ranked among comparable runs.

A row is a run and an evaluation e at which its failure may begin; the score is known L updates before. Positive: the
failure begins at e. Negative: the run does not fail until at least GUARD updates later. Rows between are left out. The
score is the percentile among the runs of the same task, regime and lag at the same e, so that neither step nor lag
contributes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from vcpo_bench.analysis.prediction.landmarks import GUARD
from vcpo_bench.analysis.prediction.panel import MATCH, Array, Flags, Panel


class Landmarks(NamedTuple):
    """Rows at one lead, all of shape [R].

    `run` and `row` index the scores, `found` is the evaluation e, `positive` the label, `group` who is ranked
    with whom.
    """

    run: NDArray[np.int64]
    row: NDArray[np.int64]
    found: NDArray[np.int64]
    positive: Flags
    group: NDArray[np.int64]


def landmarks(panel: Panel, lead: int, guard: int = GUARD) -> Landmarks:
    """Every run at every evaluation it was at risk at, seen from `lead` updates before.

    Args:
        panel: The runs.
        lead: Updates between the landmark and the evaluation.
        guard: A run that fails at most this many updates after the evaluation is left out there.
    """
    last = int(min(panel.end.max(initial=0), panel.length + lead))
    grid = np.arange(panel.stride, last + 1, panel.stride)
    grid = grid[(grid - lead >= 1) & (grid - lead <= panel.length)]
    positive = panel.found[:, None] == grid
    negative = (panel.found[:, None] > grid + guard) & (panel.end[:, None] >= grid)
    run, column = np.nonzero(positive | negative)
    group = panel.strata(MATCH)[run] * max(grid.size, 1) + column
    return Landmarks(run, grid[column] - lead - 1, grid[column], positive[run, column], group)


def ranks_within(values: Array, group: NDArray[np.int64]) -> Array:
    """Percentile of each value [R] within its group: the share below plus half the share equal."""
    order = np.lexsort((values, group))
    sorted_values, sorted_group = values[order], group[order]
    new_group = np.concatenate([[True], sorted_group[1:] != sorted_group[:-1]])
    new_value = new_group | np.concatenate([[True], sorted_values[1:] != sorted_values[:-1]])
    first, count = _spans(new_group)
    tie_first, tie_count = _spans(new_value)
    result = np.empty(values.size)
    result[order] = (tie_first - first + 0.5 * tie_count) / count
    return result


def average_precision(score: Array, positive: Flags, run: NDArray[np.int64], draws: Array) -> Array:
    """Area under the precision-recall curve in each replicate [B], steps at distinct scores, rows weighted by runs.

    Args:
        score: [R], greater is more suspect.
        positive: Label [R].
        run: Index of the run each row belongs to [R].
        draws: How often each run was drawn [B, N]; a row of ones gives the estimate.
    """
    order = np.argsort(-score, kind="stable")
    label, owner, value = positive[order], run[order], score[order]
    last = np.append(np.flatnonzero(value[1:] != value[:-1]), value.size - 1)
    at = np.flatnonzero(label)
    if not at.size:
        return np.full(len(draws), np.nan)
    ends, step = np.unique(last[np.searchsorted(last, at)], return_inverse=True)  # where precision is asked for
    own = np.asarray(draws, dtype=np.float64)[:, owner[at]]
    hits = np.cumsum(np.add.reduceat(own, np.searchsorted(step, np.arange(ends.size)), axis=1), axis=1)
    everything = np.cumsum(_runs_between(ends, owner, draws.shape[1]) @ draws.T, axis=0).T
    precision = np.divide(hits, everything, out=np.zeros_like(hits), where=everything > 0)
    total, number = (own * precision[:, step]).sum(axis=1), own.sum(axis=1)
    return np.where(number > 0, total / np.where(number > 0, number, 1.0), np.nan)


def _runs_between(ends: NDArray[np.int64], owner: NDArray[np.int64], runs: int) -> sparse.csr_array:
    """`[J, N]` how many of the rows up to each end, and after the one before, are of which run."""
    rows = np.arange(ends[-1] + 1)
    ones = np.ones(rows.size)
    return sparse.csr_array((ones, (np.searchsorted(ends, rows), owner[rows])), shape=(ends.size, runs))


def _spans(new: Flags) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Start and length of the span that each position of a sorted array belongs to."""
    starts = np.flatnonzero(new)
    member = np.cumsum(new) - 1
    return starts[member], np.diff(np.append(starts, new.size))[member]
