"""Tables of a page as Markdown."""

from __future__ import annotations

import math
from collections.abc import Callable

import pandas as pd

_CODE = ("method", "against", "task", "arm", "rule", "engine", "correction_in_loss")
"""Columns whose values are typed in commands."""
DIFFERENCE = "difference"
_HIDDEN = ("low90", "high90", "p")
"""Columns of the tables that verdicts rest on and that a page does not show."""


def markdown(table: pd.DataFrame) -> str:
    """A table with the ends of its 95% interval, `low` and `high`, in one column; a difference has as many digits."""
    shown = table.drop(columns=[name for name in _HIDDEN if name in table])
    if {"low", "high"} <= set(shown):
        show = difference if DIFFERENCE in shown else number
        ends = [_interval(low, high, show) for low, high in zip(shown["low"], shown["high"], strict=True)]
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


def difference(value: float) -> str:
    """Three decimals, so that a difference and the ends of its interval can be read together."""
    return number(value) if math.isnan(value) or math.isinf(value) or value == 0 else f"{value:.3f}"


def _interval(low: float, high: float, show: Callable[[float], str]) -> str:
    return "" if math.isnan(low) or math.isnan(high) else f"[{show(low)}, {show(high)}]"


def _cell(name: str, value: object) -> str:
    if name in _CODE:
        return f"`{value}`"
    if name in ("rate", "lr") and isinstance(value, float) and not math.isnan(value):
        return f"{value:g}"
    if not isinstance(value, float):
        return str(value)
    return difference(value) if name == DIFFERENCE else number(value)
