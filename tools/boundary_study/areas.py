"""AUROC of "which seed will fail" within each place, and what is left of it when the seeds are drawn again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vcpo_bench.analysis.prediction.landmarks import Comparison, RiskSets, compare, draws_of, risk_sets
from vcpo_bench.analysis.prediction.panel import Panel

from .alarms import PLACE
from .design import GROUPS, SEEDS, STEPS, Place, counts
from .tables import SIGNALS, Tables, outcomes

Array = NDArray[np.float64]

LEADS = (5, 10, 20, 40)
PRIMARY_LEAD = 10
DRAWS = 2000
LEAST_CASES = 4
"""Failed seeds that have a landmark, below which a place has no AUROC at a lead."""
STRIDE = 10
"""Updates between evaluations: onsets lie on this grid."""
_TIE = 0.5


@dataclass(frozen=True)
class Area:
    """AUROC of one signal, or a difference of two, at one lead, in each place.

    Attributes:
        places: The places, P of them.
        each: Of every place, [P]; NaN where the signal ranks no failed seed, or all seeds alike.
        drawn: The same when the seeds of the place are drawn again, [P, B].
    """

    places: tuple[Place, ...]
    each: Array
    drawn: Array

    @property
    def known(self) -> tuple[Place, ...]:
        """The places that have a number."""
        return tuple(place for place, value in zip(self.places, self.each, strict=True) if np.isfinite(value))

    def groups(self) -> Array:
        """Mean over the places of each group that has a number, [G]."""
        return _by_group(self.known, self.each[np.isfinite(self.each)][:, None])[:, 0]

    def seed_draws(self) -> Array:
        """Mean over groups in each replicate of the seeds that has a number, [B]; the places stay as they are."""
        means = _by_group(self.known, self.drawn[np.isfinite(self.each)])
        return np.asarray(np.nanmean(means[:, np.isfinite(means).any(axis=0)], axis=0))

    def only(self, places: tuple[Place, ...]) -> Area:
        """The same with no other places than these."""
        kept = [place in places for place in self.places]
        own = tuple(place for place in self.places if place in places)
        return Area(own, self.each[kept], self.drawn[kept])

    def less(self, other: Area) -> Area:
        """The difference, paired by place and by replicate; NaN where one of the two is."""
        return replace(self, each=self.each - other.each, drawn=self.drawn - other.drawn)


def panels(tables: Tables) -> dict[Place, Panel]:
    """The main seeds of each place that counts; the scores are known at every fifth update."""
    found = {}
    for place, ended in outcomes(tables.runs).items():
        if counts(ended):
            rung = next(rung for rung, seed in ended if seed in SEEDS)
            found[place] = panel_of(tables, place, rung)
    return found


def panel_of(tables: Tables, place: Place, rung: float) -> Panel:
    """The main seeds of a place at a rung."""
    return _panel(*(own_rows(table, place, rung) for table in tables))


def own_rows(table: pd.DataFrame, place: Place, rung: float) -> pd.DataFrame:
    """The rows of a table of runs or of signals that are of the main seeds of a place, by seed."""
    values = (place.task, place.method, place.staleness, rung)
    same = (table[[*PLACE, "rung"]] == pd.Series(values, index=[*PLACE, "rung"])).all(axis=1)
    own = table[same & table["seed"].isin(SEEDS)]
    return own.sort_values("seed", kind="stable").reset_index(drop=True)


def by_update(runs: pd.DataFrame, signals: pd.DataFrame, names: Iterable[str]) -> dict[str, Array]:
    """Runs x updates of each signal, [N, S]; NaN where the table has no row.

    Args:
        runs: N runs, by seed.
        signals: Rows of these runs, as in `tables.Tables`.
        names: Columns of it.
    """
    values = {name: np.full((len(runs), STEPS), np.nan) for name in names}
    row = np.searchsorted(runs["seed"].to_numpy(int), signals["seed"].to_numpy(int))
    column = signals["update"].to_numpy(int) - 1
    for name, scores in values.items():
        scores[row, column] = signals[name].to_numpy(float)
    return values


def _panel(runs: pd.DataFrame, signals: pd.DataFrame) -> Panel:
    values = by_update(runs, signals, SIGNALS)
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


def area(found: Mapping[Place, Panel], name: str, lead: int, also: str | None = None) -> Area:
    """AUROC of a signal at a lead in each place; a place where it is constant is left out (NaN).

    The draws of the seeds depend on the group of a place alone: signals are paired, and so are the lags of a group.

    Args:
        found: The places.
        name: The signal.
        lead: Updates between landmark and onset.
        also: A second signal; only scores where both are known count.
    """
    each, drawn = np.full(len(found), np.nan), np.full((len(found), DRAWS), np.nan)
    for number, (place, panel) in enumerate(found.items()):
        scores = panel.values[name]
        if also is not None:
            scores = np.where(np.isfinite(panel.values[also]), scores, np.nan)
        comparison = compare(scores, landmarks(panel, lead))
        if _varies(comparison):
            each[number] = comparison.auroc()
            drawn[number] = comparison.replicates(_seed_draws(GROUPS.index(place.group)))
    return Area(tuple(found), each, drawn)


def _varies(comparison: Comparison) -> bool:
    """Whether any failed seed and survivor differ in score: else the signal has nothing to tell them by."""
    return bool((comparison.wins[comparison.usable] != _TIE).any())


def _by_group(places: tuple[Place, ...], values: Array) -> Array:
    """Mean over the places of each group: [P, N] becomes [G, N]."""
    names = list(dict.fromkeys(place.group for place in places))
    member = np.array([[place.group == name for place in places] for name in names], dtype=float)
    member = member.reshape(len(names), len(places))
    return np.asarray(member @ values / member.sum(axis=1, keepdims=True))


@cache
def _seed_draws(group: int) -> Array:
    """How often each seed of a group's places is drawn, [B, 32]: kept, for every signal and lead uses the same."""
    return draws_of(len(SEEDS), DRAWS, seed=group)


def sizes(found: Mapping[Place, Panel], lead: int) -> tuple[int, int]:
    """Failed seeds with a landmark, and survivors they are compared with, over all places."""
    sets = [landmarks(panel, lead) for panel in found.values()]
    return sum(one.case.size for one in sets), sum(int(one.controls.any(axis=0).sum()) for one in sets)
