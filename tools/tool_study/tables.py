"""The tables of the study of tool use: all follow from one row per run."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pandas as pd
from arm_study.arm_tables import means, paired
from design import LAGS

COLUMNS = (
    "episode_turns",
    "episode_calls",
    "episode_malformed_calls",
    "episode_void_turns",
    "ess_ratio",
    "kl_mu_theta_k3",
)
MARGIN = 0.05
"""Largest difference in reward that does not matter."""


def made(runs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Every table of the study, by name."""
    return {"levels": means(runs, ("task", "staleness", "method"), ("final_reward", *COLUMNS))} | {
        "rivals": rivals(runs),
        "lag": lag(runs),
    }


def rivals(runs: pd.DataFrame) -> pd.DataFrame:
    """VCPO's final reward less that of each rival, per task and lag."""
    tables = []
    for rival in ("tis", "vespo", "clip"):
        found = paired(runs, ("vcpo", rival), "final_reward", side="method")
        found.insert(0, "method", rival)
        tables.append(found)
    return _judged(pd.concat(tables, ignore_index=True))


def lag(runs: pd.DataFrame) -> pd.DataFrame:
    """What lag costs each method in final reward, per task."""
    pair = (LAGS[-1], LAGS[0])
    return _judged(paired(runs, pair, "final_reward", side="staleness", by=("task", "method")))


def _judged(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(verdict=[_verdict(row) for row in table.to_dict("records")])


def _verdict(row: dict[Hashable, Any]) -> str:
    """As registered; a difference that is told from 0 and known to be small is both."""
    small = row["low90"] >= -MARGIN and row["high90"] <= MARGIN
    if row["low"] <= 0 <= row["high"]:
        return "equivalent" if small else "undecided"
    side = "more" if row["value"] > 0 else "less"
    return f"{side}, equivalent" if small else side
