"""Comparing failed runs with their controls by many signals: what the runs alone decide is worked out once.

Controls come from the stratum of their case, so that each stratum is compared by itself: the comparison of all runs
with all runs holds mostly pairs that do not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.analysis.prediction.landmarks import Comparison, RiskSets, mean_share, ranked
from vcpo_bench.analysis.prediction.panel import Array, Flags, Panel


@dataclass(frozen=True)
class Part:
    """The cases of one stratum.

    Attributes:
        runs: Which runs belong to the stratum [n].
        sets: Its risk sets; cases and controls are counted among `runs`.
        draws: How often each of `runs` is drawn in each replicate [B, n], in float32.
        cluster: Which of `runs` are drawn together [n].
    """

    runs: NDArray[np.int64]
    sets: RiskSets
    draws: NDArray[np.float32]
    cluster: NDArray[np.int64]


class StratifiedDraws:
    """How often each run is drawn, stratum by stratum: the same for every lead and signal.

    Args:
        draws: Of `landmarks.bootstrap_draws`, [B, N].
        stratum: Number of the stratum of each run [N].
        cluster: Which runs are drawn together [N].
    """

    def __init__(self, draws: Array, stratum: NDArray[np.int64], cluster: NDArray[np.int64]) -> None:
        self._cluster = cluster
        members = {int(one): np.flatnonzero(stratum == one) for one in np.unique(stratum)}
        self._of = {one: (runs, draws[:, runs].astype(np.float32)) for one, runs in members.items()}

    def parts(self, sets: RiskSets) -> list[Part]:
        """The risk sets of one lead, stratum by stratum."""
        return list(self._parts(sets))

    def _parts(self, sets: RiskSets) -> Iterator[Part]:
        for one in np.unique(sets.stratum):
            mine = sets.stratum == one
            runs, draws = self._of[int(one)]
            own, controls = np.searchsorted(runs, sets.case[mine]), sets.controls[np.ix_(mine, runs)]
            yield Part(runs, RiskSets(own, sets.row[mine], controls, sets.stratum[mine]), draws, self._cluster[runs])


class StratifiedComparison:
    """`landmarks.Comparison` of one signal, a comparison for each stratum.

    Args:
        panel: The runs.
        name: The signal.
        parts: Of one lead.
    """

    def __init__(self, panel: Panel, name: str, parts: Sequence[Part]) -> None:
        self._parts = parts
        self._each = [ranked(panel.scores_at(name, part.sets.row, part.runs), part.sets) for part in parts]
        cases = [part.runs[one.case] for one, part in self._both()]
        # In the order of all runs, so that sums round as they do among all runs.
        self._order = np.argsort(np.concatenate([np.empty(0, dtype=np.int64), *cases]))

    def auroc(self) -> float:
        """Mean placement; NaN without a case."""
        placements = np.concatenate([np.empty(0), *(one.placements() for one in self._each)])[self._order]
        return float(placements.mean()) if placements.size else float("nan")

    def runs(self, healthy: Flags) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The failed runs, and the controls that never fail, that it rests on: their row numbers."""
        cases, controls = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        for one, part in self._both():
            failed, spared = one.runs(healthy[part.runs])
            cases.append(part.runs[failed])
            controls.append(part.runs[spared])
        return np.concatenate(cases), np.concatenate(controls)

    def replicates(self) -> Array:
        """AUROC in each bootstrap replicate [B]; NaN where a replicate holds no case with a control."""
        drawn = np.concatenate([part.draws[:, one.case] for one, part in self._both()], axis=1)[:, self._order]
        found = np.empty((2, *drawn.shape))
        place, end = np.argsort(self._order), 0
        for one, part in self._both():
            begin, end = end, end + one.case.size
            found[:, :, place[begin:end]] = one.weighted_wins(part.draws, part.cluster)
        return mean_share(drawn, found[0], found[1])

    def _both(self) -> Iterable[tuple[Comparison, Part]]:
        return zip(self._each, self._parts, strict=True)
