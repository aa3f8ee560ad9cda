"""A scoreboard in words: what ends highest at each lag, and what collapsed."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from vcpo_bench.analysis.wording import fixed, learning_rate, listed


def outcome(board: pd.DataFrame) -> Iterator[str]:
    """One line per task on the highest final rewards, then one on the collapsed runs.

    Args:
        board: Of `analysis.comparison.scoreboard.scoreboard`.
    """
    yield from highest(board)
    yield from collapsed(board)


def highest(board: pd.DataFrame) -> Iterator[str]:
    """One line per task on the highest final rewards, of methods with runs that survived; see `outcome`."""
    alive = (board["collapsed"] < board["judged"]) | (board["judged"] == 0)
    compared = board[~board["control"].astype(bool) & board["final_reward"].notna() & alive]
    for task, rows in compared.groupby("task", sort=False):
        best = rows.loc[rows.groupby("staleness")["final_reward"].idxmax()]
        rates = rows["lr"].nunique() > 1
        named = [
            f"{row['method']}{f' (lr {learning_rate(float(row.lr))})' if rates else ''} {fixed(row['final_reward'])}"
            f" at lag {row['staleness']}"
            for _, row in best.iterrows()
        ]
        yield f"{task}, highest final reward: {listed(named)}"


def collapsed(board: pd.DataFrame) -> Iterator[str]:
    """The line on the collapsed runs; see `outcome`."""
    fallen = board[board["collapsed"] > 0]
    runs, total = int(board["collapsed"].sum()), int(board["judged"].sum())
    if fallen.empty:
        if total:
            yield f"none of {total} runs collapsed"
        return
    where = fallen.groupby("method", sort=False)["staleness"].unique()
    named = [f"{method} at lag {listed([str(one) for one in sorted(lags)])}" for method, lags in where.items()]
    yield f"{runs} of {total} runs collapsed: {'; '.join(named)}"
