"""Each method at its best learning rate under an equal tuning budget, with tuning and test seeds kept apart.

At a single learning rate, methods rank by which of them happens to be near its limit. So the seeds are split into two
halves: the learning rate with the highest mean score on one half is tested on the other half, and vice versa. Every
seed gives one test score, at a learning rate chosen without it. All methods choose among the same learning rates.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

CONTEXT = ["task", "regime", "staleness"]

CROSS_FIT = 1.7
"""By how much intervals of means of tuned runs are widened.

The spread between seeds does not show that another draw of seeds would have chosen other learning rates, and the two
halves choose for each other. How much is lacking depends on how far the best learning rate is ahead, which is not
known. The worst case that was simulated is assumed (`tests/helpers/tuned_intervals.py`: 4 to 32 seeds, 2 to 8 learning
rates). It lies where the best mean is ahead of the next by half to one and a half standard deviations between seeds,
and grows with the learning rates: 1.33 for two, 1.46 for three, 1.58 for five, 1.68 for eight. Where all are equally
good, 1.25 would do; where one is clearly best, 1.
"""


@dataclass(frozen=True)
class TunedRuns:
    """The outcome of tuning.

    Attributes:
        runs: One row per task, method, regime, lag and seed: the cell at the learning rate chosen without this seed,
            all its columns, plus `fold` (which half the seed belongs to) and `rates` (how many learning rates there
            were to choose from).
        choices: One row per task, method, regime, lag and tested half: `chosen_lr`, `tuning_seeds`,
            `tuning_score`.
        budget: Per task, regime and lag the learning `rates` every method could choose from, `trials` per method, the
            methods `left_out` because they were not run at all of them, and `equal_seeds` (every method has as many
            seeds at every learning rate).
    """

    runs: pd.DataFrame
    choices: pd.DataFrame
    budget: pd.DataFrame


def halves(seeds: Iterable[int]) -> dict[int, int]:
    """Which half each seed belongs to: alternately in ascending order."""
    return {seed: position % 2 for position, seed in enumerate(sorted(set(seeds)))}


def tune(table: pd.DataFrame, column: str = "score") -> TunedRuns:
    """Choose learning rates and collect the test scores.

    Args:
        table: Cells as `analysis.comparison.normalized_rewards.NormalizedRewards.table`, without the synchronous ones.
        column: Which score decides.
    """
    runs, choices, budgets = [], [], []
    for context, cells in table.groupby(CONTEXT, sort=False):
        place = dict(zip(CONTEXT, context, strict=True))
        rates, left_out = _budget(cells)
        seeds = halves(cells["seed"])
        cells = cells[cells["lr"].isin(rates) & ~cells["method"].isin(left_out)]
        equal = cells.groupby(["method", "lr"])["seed"].nunique().nunique() <= 1
        budget = {"rates": rates, "trials": len(rates) * max(1, len(seeds) // 2), "left_out": left_out}
        budgets.append(place | budget | {"equal_seeds": equal})
        cells = cells.assign(fold=cells["seed"].map(seeds), rates=len(rates))
        for method, own in cells.groupby("method", sort=False):
            for tested in (0, 1):
                choice = _choose(own[own["fold"] != tested], rates, column)
                test = own[(own["fold"] == tested) & (own["lr"] == choice["chosen_lr"])]
                if len(test):
                    runs.append(test)
                    choices.append(place | {"method": method, "tested_half": tested} | choice)
    empty = pd.DataFrame(columns=[*table.columns, "fold", "rates"])
    together = pd.concat(runs, ignore_index=True) if runs else empty
    return TunedRuns(together, pd.DataFrame(choices), pd.DataFrame(budgets))


def widening(runs: pd.DataFrame) -> float:
    """Factor for intervals of means of these runs: `CROSS_FIT` if there was a choice of learning rates, else 1."""
    return CROSS_FIT if were_tuned(runs) else 1.0


def were_tuned(runs: pd.DataFrame) -> bool:
    """Whether there was a choice of learning rates for some of these runs (`TunedRuns.runs`)."""
    return bool("rates" in runs and (runs["rates"] > 1).any())


def _budget(cells: pd.DataFrame) -> tuple[list[float], list[str]]:
    """The learning rates to choose among, and the methods that lack one of them.

    Of the sets of learning rates that a method was run at, the one that leaves the most choice: learning rates beyond
    the first, times methods that ran at all of them. A variant run at one learning rate only does not narrow the choice
    of the others.
    """
    per_method = cells.groupby("method")["lr"].agg(frozenset)
    complete = {rates: sum(rates <= own for own in per_method) for rates in set(per_method)}
    chosen = max(complete, key=lambda rates: (complete[rates] * (len(rates) - 1), complete[rates], sorted(rates)))
    return sorted(chosen), [str(name) for name, own in per_method.items() if not chosen <= own]


def _choose(cells: pd.DataFrame, rates: list[float], column: str) -> dict[str, object]:
    """The best learning rate on the tuning seeds; without tuning seeds, the only one there is, or none."""
    means = cells.groupby("lr")[column].mean().dropna()
    if means.empty:
        only = rates[0] if len(rates) == 1 else float("nan")
        return {"chosen_lr": only, "tuning_seeds": 0, "tuning_score": float("nan")}
    return {
        "chosen_lr": float(means.index.to_numpy()[means.to_numpy().argmax()]),
        "tuning_seeds": int(cells["seed"].nunique()),
        "tuning_score": float(means.max()),
    }
