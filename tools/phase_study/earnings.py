"""What each method earns at each lag, at the rate, among those tried near its boundary, that other seeds chose."""

from __future__ import annotations

import pandas as pd

from vcpo_bench.analysis.intervals import t_interval, within_unit

from .design import LADDER

LEAST_OTHERS = 2
"""How many other seeds must have run a rate for it to be chosen by them."""


def earnings(runs: pd.DataFrame) -> pd.DataFrame:
    """Mean final reward over seeds, per task, method and lag. A run that failed counts with what it earned.

    The best of several rates, chosen and scored on the same run, is too high, and more so where more rates survive.

    Args:
        runs: Of `tables.run_table`.

    Returns:
        Columns `task`, `method`, `staleness`, `seeds`, `median_rate` that was chosen, `failed` of the chosen runs,
        `at_lowest`, how many of them have the lowest rate that their seed ran, and `reward` with its 95% t interval
        `low` to `high`; NaN with fewer than two seeds.
    """
    rows = []
    for (task, method, lag), group in runs.groupby(["task", "method", "staleness"], sort=False):
        chosen = _chosen(group)
        row = {"task": task, "method": method, "staleness": lag, "seeds": len(chosen)}
        if len(chosen):
            low, high = within_unit(chosen["final_reward"], *t_interval(chosen["final_reward"]))
            row |= {"median_rate": LADDER[0] * 2 ** chosen["rung"].median(), "failed": int(chosen["failed"].sum())}
            lowest = group.groupby("seed")["rung"].min()
            row |= {"at_lowest": int((chosen["rung"] == chosen["seed"].map(lowest)).sum())}
            row |= {"reward": chosen["final_reward"].mean(), "low": low, "high": high}
        rows.append(row)
    return pd.DataFrame(rows)


def _chosen(group: pd.DataFrame) -> pd.DataFrame:
    """Of each seed the run, among those it made, at the rate with the highest mean reward of the other seeds."""
    rewards = group.pivot_table(index="seed", columns="rung", values="final_reward")
    kept = []
    for seed in rewards.index:
        others = rewards.drop(index=seed).dropna(axis=1, thresh=LEAST_OTHERS)
        own = group[group["seed"] == seed]
        means = others.mean().filter(own["rung"].tolist())
        if len(means):
            kept.append(own[own["rung"] == means.idxmax()])
    return pd.concat(kept) if kept else group.iloc[:0]
