"""The mean over groups of places, with its t interval: groups are few, and a bootstrap of few covers too little."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from vcpo_bench.analysis.tolerance import EQUAL


class GroupMean(NamedTuple):
    """A mean over groups with its 95% and 90% intervals and the two-sided p against the null."""

    value: float
    low: float
    high: float
    low90: float
    high90: float
    p: float


def over_groups(values: NDArray[np.float64], null: float, least_error: float = 0.0) -> GroupMean:
    """Student's t over groups, each of the same weight.

    Args:
        values: One per group, shape [G], at least two.
        null: Of the p-value.
        least_error: Smallest standard error. An AUROC of 1 in every group has no spread, and is not known exactly.
    """
    mean, free = float(values.mean()), values.size - 1
    error = max(float(values.std(ddof=1) / np.sqrt(values.size)), least_error)
    low, high, low90, high90 = (
        mean + float(special.stdtrit(free, level)) * error for level in (0.025, 0.975, 0.05, 0.95)
    )
    if error > 0:
        p = float(2 * special.stdtr(free, -abs(mean - null) / error))
    else:
        p = 1.0 if abs(mean - null) <= EQUAL else 0.0
    return GroupMean(mean, low, high, low90, high90, p)


def perfect_error(cases: int) -> float:
    """Standard error of a share of 1 - 1/(2 cases): what an AUROC without a mistake in so many cases is given."""
    wrong = 0.5 / cases
    return float(np.sqrt(wrong * (1 - wrong) / cases))
