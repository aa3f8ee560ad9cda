"""What the page said with the runs of seeds 0 to 3 as they had come out before they were made again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from vcpo_bench.analysis.wording import with_interval

from .tables import FOLDER, PLACE

EARLIER = FOLDER / "replaced.csv"
"""All runs of the earlier page."""
_TOLD = {
    "exponents": (["task", "method", "lag"], "exponent"),
    "rates": (["task", "staleness", "against"], "difference"),
    "same_rate": (["task", "staleness"], "difference"),
    "rewards": (["task", "staleness", "against"], "difference"),
}
"""The tables with verdicts: what names a row, and the value that is judged."""


def moved(tables: Mapping[str, pd.DataFrame], earlier: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The verdicts that read otherwise with the earlier runs.

    Returns:
        Columns `table`, `where`, `earlier`, `now`: the value with its 95% interval, and its verdict.
    """
    rows = []
    for name, (place, value) in _TOLD.items():
        both = tables[name].merge(earlier[name], on=place, suffixes=("", "_old"), validate="one_to_one")
        for row in both[both["verdict"] != both["verdict_old"]].to_dict("records"):
            said = {word: _said(row, value, end) for word, end in (("earlier", "_old"), ("now", ""))}
            rows.append({"table": name, "where": ", ".join(str(row[column]) for column in place)} | said)
    return pd.DataFrame(rows, columns=["table", "where", "earlier", "now"])


def agreement(runs: pd.DataFrame, earlier: pd.DataFrame, seeds: range) -> str:
    """How many of the runs that both have came out as before, as a sentence.

    Args:
        runs: Of the study.
        earlier: As they had come out before.
        seeds: Which were made again.
    """
    own, before = (table[table["seed"].isin(seeds)] for table in (runs, earlier))
    both = own.merge(before, on=[*PLACE, "rung"], suffixes=("", "_old"), validate="one_to_one")
    fates = int((both["failed"].astype(bool) == both["failed_old"].astype(bool)).sum())
    return (
        f"{len(own)} runs instead of {len(before)}, {len(both)} of them at the same rate; of these {fates} met the "
        f"same fate, and {int((both['final_reward'] == both['final_reward_old']).sum())} have the same final reward"
    )


def _said(row: Mapping[Any, Any], value: str, end: str) -> str:
    middle, low, high = (float(row[f"{name}{end}"]) for name in (value, "low", "high"))
    return f"{with_interval(middle, low, high)} {row[f'verdict{end}']}"
