"""AUROC of "which seed will fail" within each place, and its bootstrap over places and the seeds within them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vcpo_bench.analysis.prediction.landmarks import RiskSets, compare, draws_of, risk_sets
from vcpo_bench.analysis.prediction.panel import Panel

from .design import SEEDS, STEPS, Place, counts
from .tables import PLACE, SIGNALS, Tables, outcomes

Array = NDArray[np.float64]

LEADS = (5, 10, 20, 40)
PRIMARY_LEAD = 10
DRAWS = 2000
LEAST_CASES = 4
"""Failed seeds that have a landmark, below which a place has no AUROC at a lead."""
STRIDE = 10
"""Updates between evaluations: onsets lie on this grid."""


@dataclass(frozen=True)
class Area:
    """AUROC of one signal, or a difference of two, at one lead.

    Attributes:
        each: Of every place, [P]; NaN where the signal ranks no failed seed.
        drawn: The mean over places in each replicate, [B].
    """

    each: Array
    drawn: Array

    @property
    def value(self) -> float:
        """Mean over places, all of the same weight."""
        return float(np.nanmean(self.each))

    def less(self, other: Area) -> Area:
        """The difference, paired by place and by replicate."""
        return Area(self.each - other.each, self.drawn - other.drawn)


def panels(tables: Tables) -> dict[Place, Panel]:
    """The main seeds of each place that counts; the scores are known at every fifth update."""
    found = {}
    for place, ended in outcomes(tables.runs).items():
        if counts(ended):
            rung = next(rung for rung, seed in ended if seed in SEEDS)
            own = [_own(table, place, rung) for table in tables]
            found[place] = _panel(*own)
    return found


def _own(table: pd.DataFrame, place: Place, rung: float) -> pd.DataFrame:
    values = (place.task, place.method, place.staleness, rung)
    same = (table[[*PLACE, "rung"]] == pd.Series(values, index=[*PLACE, "rung"])).all(axis=1)
    own = table[same & table["seed"].isin(SEEDS)]
    return own.sort_values("seed", kind="stable").reset_index(drop=True)


def _panel(runs: pd.DataFrame, signals: pd.DataFrame) -> Panel:
    values = {name: np.full((len(runs), STEPS), np.nan) for name in SIGNALS}
    row = np.searchsorted(runs["seed"].to_numpy(int), signals["seed"].to_numpy(int))
    column = signals["update"].to_numpy(int) - 1
    for name, scores in values.items():
        scores[row, column] = signals[name].to_numpy(float)
    onset = np.where(runs["failed"].astype(bool), runs["onset"].to_numpy(np.float64), np.inf)
    end = np.where(runs["known"].astype(bool), float(STEPS), -1.0)
    return Panel(runs, values, onset, np.floor(onset / STRIDE) * STRIDE, end, STRIDE)


def landmarks(panel: Panel, lead: int) -> RiskSets:
    """The failed seeds that have a landmark `lead` updates before their onset, against those that survive all updates.

    The guard of the existing risk sets, as long as the run, leaves exactly the survivors.
    """
    return risk_sets(panel, lead, match=(), guard=STEPS)


def with_landmarks(found: Mapping[Place, Panel], lead: int) -> dict[Place, Panel]:
    """The places with at least `LEAST_CASES` failed seeds that have a landmark at this lead."""
    return {place: panel for place, panel in found.items() if landmarks(panel, lead).case.size >= LEAST_CASES}


def area(found: Sequence[Panel], name: str, lead: int, also: str | None = None) -> Area:
    """AUROC of a signal at a lead.

    A replicate draws as many places as there are, with replacement, and anew in each of them as many seeds. The draws
    depend on the number of places alone, so that signals are paired.

    Args:
        found: The places.
        name: The signal.
        lead: Updates between landmark and onset.
        also: A second signal; only scores where both are known count.
    """
    random = np.random.default_rng(0)
    which = random.integers(len(found), size=(DRAWS, len(found)))
    inner = random.integers(DRAWS, size=which.shape)
    each, drawn = np.empty(len(found)), np.empty((len(found), DRAWS))
    for number, panel in enumerate(found):
        scores = panel.values[name]
        if also is not None:
            scores = np.where(np.isfinite(panel.values[also]), scores, np.nan)
        comparison = compare(scores, landmarks(panel, lead))
        each[number] = comparison.auroc()
        drawn[number] = comparison.replicates(_seed_draws(number))
    return Area(each, np.nanmean(drawn[which, inner], axis=1))


@cache
def _seed_draws(number: int) -> Array:
    """How often each seed of a place is drawn, [B, 32]: kept, for every signal and lead uses the same."""
    return draws_of(len(SEEDS), DRAWS, seed=number)


def sizes(found: Mapping[Place, Panel], lead: int) -> tuple[int, int]:
    """Failed seeds with a landmark, and survivors they are compared with, over all places."""
    sets = [landmarks(panel, lead) for panel in found.values()]
    return sum(one.case.size for one in sets), sum(int(one.controls.any(axis=0).sum()) for one in sets)
