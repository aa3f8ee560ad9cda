"""Runs that were made again: how far they differ from the earlier ones, and which verdicts they move."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from arm_study.arm_tables import PLACE
from vcpo_bench.analysis.wording import counted, interval_of

_ENDS = ("value", "low", "high", "low90", "high90", "verdict", "seeds")


def agreement(runs: pd.DataFrame, earlier: pd.DataFrame) -> str:
    """How many runs came out as before, as a sentence.

    Args:
        runs: One row per run.
        earlier: Of the same runs, made before.

    Raises:
        ValueError: They are not the same runs.
    """
    both = earlier.merge(runs, on=PLACE, suffixes=("_old", ""), validate="one_to_one")
    if not len(both) == len(runs) == len(earlier):
        raise ValueError("the earlier table has other runs")
    apart = (both["final_reward"] - both["final_reward_old"]).abs()
    fates = int((both["failed"] != both["failed_old"]).sum())
    told = f"{counted(fates, 'fate')} {'differ' if fates > 1 else 'differs'}" if fates else "no fate differs"
    return (
        f"{int((apart == 0).sum())} final rewards are the same, {int((apart > 0).sum())} differ, by at most "
        f"{apart.max():.3f}, and {told}"
    )


def moved(tables: Mapping[str, pd.DataFrame], earlier: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The verdicts that read otherwise with the earlier runs.

    Args:
        tables: Of a study; those with a column `verdict` count.
        earlier: The same of the earlier runs.

    Returns:
        Columns `table`, `where`, `earlier` and `now`: the value with its 95% interval and its verdict.
    """
    rows = []
    for name, table in tables.items():
        if "verdict" not in table:
            continue
        place = [column for column in table if column not in _ENDS]
        for now, before in zip(table.to_dict("records"), earlier[name].to_dict("records"), strict=True):
            if [now[column] for column in place] != [before[column] for column in place]:
                raise ValueError(f"the earlier {name} has other rows")
            if now["verdict"] != before["verdict"]:
                where = ", ".join(str(now[column]) for column in place)
                rows.append({"table": name, "where": where, "earlier": _said(before), "now": _said(now)})
    return pd.DataFrame(rows, columns=["table", "where", "earlier", "now"])


def _said(row: Mapping[Hashable, Any]) -> str:
    return f"{interval_of(row, digits=3)} {row['verdict']}"


def verdicts(tables: Mapping[str, pd.DataFrame]) -> int:
    """How many verdicts tables have."""
    return sum(int((table["verdict"] != "").sum()) for table in tables.values() if "verdict" in table)
