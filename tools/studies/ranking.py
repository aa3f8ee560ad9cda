"""How well a signal ranks runs that will fail above runs that will not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from .estimates import Estimate

PLACE = ("task", "method", "staleness")


def auroc(
    runs: pd.DataFrame, signals: pd.DataFrame, signal: str, lead: int, group: Sequence[str] = PLACE[:2]
) -> Estimate:
    """AUROC of a signal among the seeds of one place, with the seed as the unit; a guess has 1/2.

    Each failed run is compared with the runs of its place that survived, at the update `lead` updates before the
    evaluation that found it down. The interval is a jackknife's: what changes when one seed is left out everywhere.

    Args:
        runs: Columns of `PLACE`, `seed`, `failed` and `onset`, a multiple of the updates between evaluations.
        signals: Columns of `PLACE`, `seed`, `update` and the signal: more is more dangerous.
        signal: Which.
        lead: Updates.
        group: Places that share these are averaged first.
    """
    scores = signals.pivot_table(index=[*PLACE, "seed"], columns="update", values=signal)
    wins = {place: _wins(own, pd.DataFrame(scores.xs(place)), lead) for place, own in runs.groupby(list(PLACE))}
    groups = pd.DataFrame(wins.keys(), columns=list(PLACE)).groupby(list(group)).ngroup().to_numpy()

    def area(*without: int) -> float:
        each = [
            _area(table.drop(index=list(without), columns=list(without), errors="ignore")) for table in wins.values()
        ]
        return float(pd.Series(each).groupby(groups).mean().mean())

    whole, seeds = area(), np.unique(runs["seed"])
    left_out = np.array([area(seed) for seed in seeds])
    return Estimate(seeds.size * whole - (seeds.size - 1) * left_out, whole)


def _wins(runs: pd.DataFrame, scores: pd.DataFrame, lead: int) -> pd.DataFrame:
    """Whether each failed seed (rows) scores above each survivor (columns): 1, 1/2 where equal, or 0."""
    failed = runs["failed"].astype(bool)
    survivors = scores.loc[scores.index.isin(runs.loc[~failed, "seed"])]
    cases = runs[failed].assign(update=lambda table: table["onset"] - lead)
    cases = cases[cases["update"].isin(scores.columns)]
    rows = {
        seed: (scores.at[seed, update] > survivors[update]) + 0.5 * (scores.at[seed, update] == survivors[update])
        for seed, update in zip(cases["seed"], cases["update"], strict=True)
    }
    return pd.DataFrame.from_dict(rows, orient="index")


def _area(wins: pd.DataFrame) -> float:
    return float(wins.mean(axis=1).mean())
