"""Matched landmarks: each failed run, some updates before its onset, against runs that had not failed by then.

At lead L the landmark of a run whose failure begins at update e is t = e - L: t updates have been applied and their
records are known, nothing else. Its controls are the runs of the same task, regime and lag that at the same t were at
risk (not yet failed) and did not fail until at least `GUARD` updates after e. The placement of a failed run is the
share of its controls with a lower score; AUROC is the mean placement. The step alone, or the lag alone, scores 1/2 by
construction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.analysis.prediction.panel import MATCH, Array, Flags, Panel

GUARD = 20
"""A control does not fail until this many updates after its case: twice the usual gap between evaluations."""


@dataclass(frozen=True)
class RiskSets:
    """Failed runs and their controls at one lead.

    Attributes:
        case: Index of each failed run [C].
        row: Index of the newest update known at its landmark [C].
        controls: Which runs are its controls [C, N].
        stratum: Number of the group of runs that its controls come from [C].
    """

    case: NDArray[np.int64]
    row: NDArray[np.int64]
    controls: Flags
    stratum: NDArray[np.int64]


@dataclass(frozen=True)
class Comparison:
    """How the failed runs rank among their controls by one score.

    Attributes:
        case: Index of each failed run with a score and a scored control [C].
        usable: Which controls have a score [C, N].
        wins: 1 where the control's score is lower, 1/2 where equal, else 0 [C, N]; sums of halves are exact in float32
            up to millions of runs.
        stratum: As in `RiskSets` [C].
    """

    case: NDArray[np.int64]
    usable: Flags
    wins: NDArray[np.float32]
    stratum: NDArray[np.int64]

    def placements(self) -> Array:
        """Share of its controls that each failed run outranks [C]."""
        return np.asarray((self.wins * self.usable).sum(axis=1) / self.usable.sum(axis=1))

    def auroc(self) -> float:
        """Mean placement; NaN without a case."""
        return float(self.placements().mean()) if self.case.size else float("nan")

    def runs(self, healthy: Flags) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The failed runs, and the controls that never fail, that it rests on: their row numbers."""
        return self.case, np.flatnonzero(self.usable.any(axis=0) & healthy)

    def replicates(self, draws: Array, cluster: NDArray[np.int64] | None = None) -> Array:
        """AUROC in each bootstrap replicate [B]; NaN where a replicate holds no case with a control.

        Args:
            draws: How often each run was drawn, shape [B, N].
            cluster: Which runs were drawn together [N]; None: each by itself.
        """
        mine, share = self.drawn_placements(draws, cluster)
        number = mine.sum(axis=1)
        return np.where(number > 0, (mine * share).sum(axis=1) / np.maximum(number, 1), np.nan)

    def drawn_placements(self, draws: Array, cluster: NDArray[np.int64] | None = None) -> tuple[Array, Array]:
        """How often each failed run counts in each replicate [B, C], and the share of controls it outranks there.

        Controls of the case's own cluster count once, however often that was drawn: each copy of a cluster has its own.
        Counted as often as they are drawn, pairs within clusters would weigh about twice as much as in the sample.

        Args:
            draws: How often each run was drawn, shape [B, N].
            cluster: Which runs were drawn together [N]; None: each by itself.
        """
        weight, total = np.empty((2, len(draws), self.case.size))
        for one in np.unique(self.stratum):  # its cases share their controls, which are few among many runs
            mine = self.stratum == one
            runs = self.usable[mine].any(axis=0)
            usable, wins = self.usable[np.ix_(mine, runs)], self.wins[np.ix_(mine, runs)]
            drawn = draws[:, runs].astype(wins.dtype)
            weight[:, mine] = drawn @ usable.T.astype(wins.dtype)
            total[:, mine] = drawn @ (wins * usable).T
        if cluster is not None:
            own = self.usable & (cluster[self.case][:, None] == cluster[None, :])
            copies = draws[:, self.case] - 1
            weight -= copies * own.sum(axis=1)
            total -= copies * (self.wins * own).sum(axis=1)
        share = np.divide(total, weight, out=np.zeros_like(total), where=weight > 0)
        return draws[:, self.case] * (weight > 0), share


def risk_sets(panel: Panel, lead: int, match: Sequence[str] = MATCH) -> RiskSets:
    """The failed runs that have a landmark at this lead, and their controls.

    Args:
        panel: The runs.
        lead: Updates between landmark and onset.
        match: Columns of `panel.runs` in which a control agrees with its case.
    """
    case = np.flatnonzero(panel.failed & (panel.found - lead >= 1) & (panel.found - lead <= panel.length))
    stratum = panel.strata(match)
    alike = stratum[case][:, None] == stratum[None, :]
    found = panel.found[case][:, None]
    watched = (panel.end[None, :] >= found) & (panel.found[None, :] > found + GUARD)
    return RiskSets(case, (panel.found[case] - lead - 1).astype(np.int64), alike & watched, stratum[case])


def compare(panel: Panel, name: str, sets: RiskSets) -> Comparison:
    """Rank every case among its controls by a signal; runs without a score at the landmark are left out."""
    at = panel.scores_at(name, sets.row)
    own = at[np.arange(sets.case.size), sets.case]
    usable = sets.controls & np.isfinite(at)
    kept = np.isfinite(own) & usable.any(axis=1)
    at, own, usable = at[kept], own[kept][:, None], usable[kept]
    half = np.float32(0.5)
    with np.errstate(invalid="ignore"):
        wins = (at < own) + half * (at == own)
    return Comparison(sets.case[kept], usable, wins, sets.stratum[kept])


def bootstrap_draws(panel: Panel, replications: int, seed: int = 0) -> Array:
    """How often each run is drawn [B, N] when whole configurations are resampled."""
    names, member = np.unique(panel.cluster, return_inverse=True)
    share = np.full(names.size, 1 / names.size)
    drawn = np.random.default_rng(seed).multinomial(names.size, share, size=replications)
    return drawn.astype(np.float64)[:, member]
