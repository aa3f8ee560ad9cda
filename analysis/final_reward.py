"""The one definition of a run's final reward: scoreboard, scores, leaderboard and differences all take it from here."""

from __future__ import annotations

import pandas as pd

LAST = 3
"""Evaluations whose mean is the final reward of a run: its end, with less noise than the very last one has."""


def last_evaluations(evals: pd.DataFrame) -> pd.DataFrame:
    """The rows that a final reward is the mean of: the last `LAST` evaluations of each cell, in the order of updates.

    Args:
        evals: Columns `key` and `step`; a cell with fewer evaluations gives those it has.
    """
    ordered = evals.sort_values(["key", "step"], kind="stable")
    return ordered.groupby("key", sort=False).tail(LAST)


def final_rewards(evals: pd.DataFrame, column: str = "sampled_reward") -> pd.Series:
    """Mean reward over the last `LAST` evaluations of each cell, by its key; evaluations without one do not count."""
    found: pd.Series = last_evaluations(evals).groupby("key", sort=False)[column].mean()
    return found
