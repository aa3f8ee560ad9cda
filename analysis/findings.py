"""What an analysis hands over: sentences a person can read and the tables they come from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

GROUP = ["task", "method", "regime", "staleness", "lr", "control"]
"""The columns that identify a group of cells that differ only in their seed."""


@dataclass
class Findings:
    """Plain-words findings and named tables; each sentence rests on one of the tables.

    Attributes:
        text: The sentences.
        tables: By name.
        documents: Further files by file name, for other commands to read.
    """

    text: list[str] = field(default_factory=list)
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    documents: dict[str, str] = field(default_factory=dict)


def with_interval(value: float, low: float, high: float, digits: int = 2) -> str:
    """`0.12 [0.03, 0.21]`, or the bare value where there is no interval, or `unknown`."""
    if not math.isfinite(value):
        return "unknown"
    if math.isnan(low) or math.isnan(high):
        return f"{value:.{digits}f} (no interval)"
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def verdict(low: float, high: float, null: float = 0.0) -> str:
    """`more`, `less` or `cannot be told apart` from whether the interval excludes the null value."""
    if low > null:
        return "more"
    return "less" if high < null else "cannot be told apart"


def label(row: Mapping[Any, Any] | pd.Series, table: pd.DataFrame) -> str:
    """How to call the row of a table of groups: its method, with task and rate where the table has several."""
    name = str(row["method"])
    name += f" on {row['task']}" if table["task"].nunique() > 1 else ""
    return name + (f" with rate {rate(float(row['lr']))}" if table["lr"].nunique() > 1 else "")


def rate(lr: float) -> str:
    """A learning rate as people write it: `3e-4`."""
    mantissa, exponent = f"{lr:.3g}", ""
    if lr and abs(lr) < 0.01:
        mantissa, exponent = f"{lr:.2e}".split("e")
        mantissa, exponent = mantissa.rstrip("0").rstrip("."), f"e{int(exponent)}"
    return mantissa + exponent
