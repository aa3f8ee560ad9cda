"""Each method at its best learning rate under an equal tuning budget, with tuning and test seeds kept apart.

One learning rate ranks methods by who happens to be near its limit. So the seeds are split in two halves; the rate
with the highest mean score on one half is tested on the other, and the other way round. Every seed gives one test
score, at a rate that was chosen without it. All methods choose among the same rates.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from vcpo_bench.analysis.findings import rate

CONTEXT = ["task", "regime", "staleness"]

CROSS_FIT = math.sqrt(1.36)
"""By how much intervals of means of tuned runs are widened.

The two halves choose each other's rate, so their means are positively correlated: where all rates are equally good,
by 0.32 with two rates and 0.36 with three or more; where one rate is clearly best, by 0. The worst case is assumed.
"""


@dataclass(frozen=True)
class Tuned:
    """The outcome of tuning.

    Attributes:
        runs: One row per task, method, regime, lag and seed: the cell at the rate chosen without this seed, all its
            columns, plus `fold` (which half the seed belongs to) and `rates` (how many rates there were to
            choose from).
        choices: One row per task, method, regime, lag and tested half: `chosen_lr`, `tuning_seeds`,
            `tuning_score`.
        budget: Per task, regime and lag the `rates` every method could choose from, `trials` per method, and the
            methods `left_out` because they were not run at all of them.
        notes: What limits the conclusion.
    """

    runs: pd.DataFrame
    choices: pd.DataFrame
    budget: pd.DataFrame
    notes: list[str]


def halves(seeds: Iterable[int]) -> dict[int, int]:
    """Which half each seed belongs to: alternately in ascending order."""
    return {seed: position % 2 for position, seed in enumerate(sorted(set(seeds)))}


def tune(table: pd.DataFrame, column: str = "score") -> Tuned:
    """Choose rates and collect the test scores.

    Args:
        table: Cells as `analysis.comparison.normalized_scores.Scores.table`, without the synchronous ones.
        column: Which score decides.
    """
    runs, choices, budgets, notes = [], [], [], []
    lacking: dict[str, list[str]] = {}
    for context, cells in table.groupby(CONTEXT, sort=False):
        place = dict(zip(CONTEXT, context, strict=True))
        rates, left_out = _budget(cells)
        seeds = halves(cells["seed"])
        budgets.append(place | {"rates": rates, "trials": len(rates) * max(1, len(seeds) // 2), "left_out": left_out})
        if left_out:
            names, needed = ", ".join(left_out), ", ".join(map(rate, rates))
            lacking.setdefault(f"{names} did not run at all of {needed} and has no best rate.", []).append(_name(place))
        cells = cells[cells["lr"].isin(rates) & ~cells["method"].isin(left_out)]
        if cells.groupby(["method", "lr"])["seed"].nunique().nunique() > 1:
            notes.append(f"{_name(place)}: methods or rates ran with different numbers of seeds: unequal budgets.")
        cells = cells.assign(fold=cells["seed"].map(seeds), rates=len(rates))
        for method, own in cells.groupby("method", sort=False):
            for tested in (0, 1):
                choice = _choose(own[own["fold"] != tested], rates, column)
                test = own[(own["fold"] == tested) & (own["lr"] == choice["chosen_lr"])]
                if len(test):
                    runs.append(test)
                    choices.append(place | {"method": method, "tested_half": tested} | choice)
    notes = [f"{'; '.join(places)}: {what}" for what, places in lacking.items()] + notes
    if table["lr"].nunique() == 1:
        notes.append(
            "Only one learning rate was run: nothing was tuned, and the ranking may be an accident of this rate."
        )
    if table["seed"].nunique() < 2:
        notes.append("One seed cannot tune and test: no method is shown at a best rate.")
    empty = pd.DataFrame(columns=[*table.columns, "fold", "rates"])
    return Tuned(
        pd.concat(runs, ignore_index=True) if runs else empty, pd.DataFrame(choices), pd.DataFrame(budgets), notes
    )


def widening(runs: pd.DataFrame) -> float:
    """Factor for intervals of means of these runs: `CROSS_FIT` if rates were chosen among several, else 1."""
    return CROSS_FIT if "rates" in runs and (runs["rates"] > 1).any() else 1.0


def _budget(cells: pd.DataFrame) -> tuple[list[float], list[str]]:
    """The rates to choose among, and the methods that lack one of them.

    Of the sets of rates that a method was run at, the one with the most choice: rates beyond the first, times methods
    that ran at all of them. Variants run at one rate only thus do not narrow the choice of the others.
    """
    per_method = cells.groupby("method")["lr"].agg(frozenset)
    complete = {rates: sum(rates <= own for own in per_method) for rates in set(per_method)}
    chosen = max(complete, key=lambda rates: (complete[rates] * (len(rates) - 1), complete[rates], sorted(rates)))
    return sorted(chosen), [str(name) for name, own in per_method.items() if not chosen <= own]


def _choose(cells: pd.DataFrame, rates: list[float], column: str) -> dict[str, object]:
    """The best rate on the tuning seeds; with none of them, the only rate there is, or none."""
    means = cells.groupby("lr")[column].mean().dropna()
    if means.empty:
        only = rates[0] if len(rates) == 1 else float("nan")
        return {"chosen_lr": only, "tuning_seeds": 0, "tuning_score": float("nan")}
    return {
        "chosen_lr": float(means.index.to_numpy()[means.to_numpy().argmax()]),
        "tuning_seeds": int(cells["seed"].nunique()),
        "tuning_score": float(means.max()),
    }


def _name(place: dict[str, object]) -> str:
    return f"{place['task']} at lag {place['staleness']} ({place['regime']})"
