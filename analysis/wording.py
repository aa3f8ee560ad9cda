"""How numbers and names are worded, the same in the sentences of every analysis."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def with_interval(value: float, low: float, high: float, digits: int = 2) -> str:
    """`0.12 [0.03, 0.21]`, or the bare value where there is no interval, or `unknown`."""
    if not math.isfinite(value):
        return "unknown"
    if math.isnan(low) or math.isnan(high):
        return fixed(value, digits)
    return f"{fixed(value, digits)} [{fixed(low, digits)}, {fixed(high, digits)}]"


def interval_of(row: Mapping[Any, Any] | pd.Series, name: str = "", digits: int = 2) -> str:
    """`with_interval` of a row: of its columns `value`, `low`, `high`, or `name`, `name_low`, `name_high`."""
    columns = (name, f"{name}_low", f"{name}_high") if name else ("value", "low", "high")
    value, low, high = (float(row[column]) for column in columns)
    return with_interval(value, low, high, digits)


def fixed(value: float, digits: int = 2) -> str:
    """A number with this many decimals; what rounds to zero has no sign."""
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def verdict(low: float, high: float, null: float = 0.0) -> str:
    """`more`, `less` or `cannot be told apart`, from whether the interval excludes the null value."""
    if low > null:
        return "more"
    return "less" if high < null else "cannot be told apart"


def label(row: Mapping[Any, Any] | pd.Series, table: pd.DataFrame) -> str:
    """Name of a row of a table of groups: its method, with task and learning rate where the table has several."""
    name = str(row["method"])
    name += f" on {row['task']}" if table["task"].nunique() > 1 else ""
    return name + (f" with learning rate {learning_rate(float(row['lr']))}" if table["lr"].nunique() > 1 else "")


def span(rows: pd.DataFrame, table: pd.DataFrame, column: str, form: str) -> str:
    """`0.26 (reinforce) to 0.99 (vcpo)`: the ends of a column over some groups, or the one value they share.

    Args:
        rows: The groups; those without a value are left out.
        table: The table they are part of, for `label`.
        column: Which column.
        form: Format of a value, as in an f-string.
    """
    known = rows[rows[column].notna()].sort_values(column, kind="stable")
    if known.empty:
        return "unknown"
    first, last = known.iloc[0], known.iloc[-1]
    if format(first[column], form) == format(last[column], form):
        return format(first[column], form)
    return " to ".join(f"{format(row[column], form)} ({label(row, table)})" for row in (first, last))


def percent(share: float) -> str:
    """`12%`, or `<1%` where rounding would hide that it is not 0."""
    return "<1%" if 0 < share < 0.005 else f"{share:.0%}"


def p_value(p: float) -> str:
    """`p = 0.012`, or `p < 0.001`."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def counted(number: int, noun: str) -> str:
    """`1 run`, `3 runs`, `no runs`."""
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def learning_rate(lr: float) -> str:
    """A learning rate as people write it: `3e-4`; with all its digits, so that two rates never look the same."""
    return next((text for digits in range(3, 17) if float(text := rounded_rate(lr, digits)) == lr), repr(float(lr)))


def rounded_rate(lr: float, digits: int = 3) -> str:
    """A computed learning rate, such as an effective one, with this many significant digits."""
    if not lr or abs(lr) >= 0.01:
        return f"{lr:.{digits}g}"
    mantissa, exponent = f"{lr:.{digits - 1}e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""


def row_by_row(table: pd.DataFrame) -> Iterator[tuple[pd.DataFrame, dict[Any, Any]]]:
    """Each row of a table: as a table of one row that keeps its number, and as a dict."""
    for position, row in enumerate(table.to_dict("records")):
        yield table.iloc[[position]], row
