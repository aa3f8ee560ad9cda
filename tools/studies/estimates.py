"""Means and differences over seeds, and the one rule that gives a difference its word.

The seed is the unit everywhere: runs of one seed share prompts and sampling noise, so they are averaged first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vcpo_bench.analysis.intervals import stratified_t

MARGIN = 0.2
"""Differences within this share of a gain are small."""
PLACE = ("task", "regime", "staleness", "lr")
"""Besides the seed: what two runs share to be a pair."""


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds with its Student-t interval.

    Attributes:
        values: One per seed, [n].
        value: The estimate.
    """

    values: NDArray[np.float64]
    value: float

    @property
    def seeds(self) -> int:
        """How many it rests on."""
        return self.values.size

    @property
    def low(self) -> float:
        """Lower end of the 95% interval."""
        return self.interval()[0]

    @property
    def high(self) -> float:
        """Upper end of the 95% interval."""
        return self.interval()[1]

    def p(self, null: float = 0.0) -> float:
        """Two-sided p of the t test against a value."""
        return stratified_t([self.values - self.values.mean() + self.value - null])[3]

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The interval of a level, around `value`."""
        mean, low, high, _ = stratified_t([self.values], level)
        return self.value + low - mean, self.value + high - mean


def over_seeds(by_seed: pd.Series[float]) -> Estimate:
    """The mean of one value per seed; missing ones are left out."""
    values = np.asarray(by_seed.dropna(), dtype=np.float64)
    return Estimate(values, float(values.mean()))


def mean(runs: pd.DataFrame, column: str = "final_reward") -> Estimate:
    """The mean of a column of runs, those of one seed averaged first."""
    return over_seeds(runs.groupby("seed")[column].mean())


def difference(
    runs: pd.DataFrame,
    one: str,
    other: str,
    column: str = "final_reward",
    of: str = "method",
    at: Sequence[str] = PLACE,
) -> Estimate:
    """The mean of `one` less that of `other`, over pairs of runs at the same place and seed.

    Args:
        runs: One row per run.
        one: Value of the column `of`.
        other: Value of the column `of`.
        column: What is compared.
        of: The column that tells the two apart.
        at: Columns that the runs of a pair share, besides the seed; those that `runs` lacks are left out.
    """
    index = ["seed", *(name for name in at if name in runs)]
    sides = runs[runs[of].isin([one, other])].pivot_table(index=index, columns=of, values=column)
    return over_seeds((sides[one] - sides[other]).dropna().groupby("seed").mean())


def word(found: Estimate, gain: float) -> str:
    """What a difference says: first whether there is one, then whether it can be large.

    `higher` or `lower` where its 95% interval leaves out 0, `slightly` so where its 90% interval lies within `MARGIN`
    of the gain as well. Otherwise `equivalent` where the 90% interval lies within it, else `undecided`.

    Args:
        found: The difference.
        gain: What the margin is a share of: what the better of the two gained.
    """
    low, high = found.interval(0.9)
    small = max(-low, high) <= MARGIN * gain
    if found.low <= 0 <= found.high:
        return "equivalent" if small else "undecided"
    return ("slightly " if small else "") + ("higher" if found.value > 0 else "lower")
