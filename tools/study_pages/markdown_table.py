"""Tables of a page as Markdown."""

from __future__ import annotations

import math

import pandas as pd

_CODE = ("method", "against", "task", "arm", "rule", "engine", "correction_in_loss")
"""Columns whose values are typed in commands."""
_HIDDEN = ("low90", "high90", "p")
"""Columns of the tables that verdicts rest on and that a page does not show."""


def markdown(table: pd.DataFrame) -> str:
    """A table with the ends of its 95% interval, `low` and `high`, in one column."""
    shown = table.drop(columns=[name for name in _HIDDEN if name in table])
    if {"low", "high"} <= set(shown):
        ends = [_interval(low, high) for low, high in zip(shown["low"], shown["high"], strict=True)]
        shown.insert(list(shown).index("low"), "95%", ends)
        shown = shown.drop(columns=["low", "high"])
    head = " | ".join(str(name).replace("_", " ") for name in shown)
    lines = [f"| {head} |", "|---" * shown.shape[1] + "|"]
    rows = [" | ".join(_cell(str(name), value) for name, value in row.items()) for row in shown.to_dict("records")]
    return "\n".join([*lines, *(f"| {row} |" for row in rows)]) + "\n"


def number(value: float) -> str:
    """Two decimals where they say something; an end of an interval without a bound is open."""
    if math.isnan(value):
        return ""
    if math.isinf(value):
        return "open"
    if value == 0:
        return "0"
    return f"{value:.2g}" if abs(value) < 0.01 else f"{value:.2f}" if abs(value) < 10 else f"{value:.0f}"


def _interval(low: float, high: float) -> str:
    return "" if math.isnan(low) or math.isnan(high) else f"[{number(low)}, {number(high)}]"


def _cell(name: str, value: object) -> str:
    if name in _CODE:
        return f"`{value}`"
    if name in ("rate", "lr") and isinstance(value, float) and not math.isnan(value):
        return f"{value:g}"
    return number(value) if isinstance(value, float) else str(value)
