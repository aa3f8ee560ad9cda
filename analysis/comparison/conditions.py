"""Conditions on a scoreboard, for continuous integration: `method=vcpo: final_reward_low < 0.5`."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from vcpo_bench.analysis.results import GROUP
from vcpo_bench.analysis.wording import learning_rate
from vcpo_bench.errors import UsageError
from vcpo_bench.naming.grammar import split_list, unknown_name

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_FORM = re.compile(r"(?:(?P<rows>[^<>]*):)?\s*(?P<column>\w+)\s*(?P<sign><=|>=|<|>)\s*(?P<bound>[^<>=]+)")
_TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_ALIASES = {"lag": "staleness"}
_JUDGED = ("collapsed",)
"""Columns that count cells with a verdict of the collapse rule; the others of the row might belong there, too."""
_REMEDY = 'write one such as "collapsed > 0" or "method=vcpo,lag=16: final_reward_low < 0.5"'


@dataclass(frozen=True)
class Condition:
    """A bound on one column of a scoreboard.

    Attributes:
        text: As it was typed.
        rows: Column and text of what the rows must be; those that are controls only count where `method` or `control`
            is named.
        column: The column compared.
        sign: `<`, `<=`, `>` or `>=`.
        bound: The number it is compared with.
    """

    text: str
    rows: tuple[tuple[str, str], ...]
    column: str
    sign: str
    bound: float


def read_condition(text: str, columns: list[str]) -> Condition:
    """Read `[COLUMN=VALUE,...:] COLUMN SIGN NUMBER`.

    Raises:
        UsageError: It has another form, or there is no such column.
    """
    found = _FORM.fullmatch(text.strip())
    try:
        bound = float(found["bound"]) if found else math.nan
    except ValueError:
        bound = math.nan
    if not found or math.isnan(bound):
        raise UsageError(f"--fail-if {text!r}: is no condition; {_REMEDY}")
    rows = tuple(_named(text, one) for one in split_list(found["rows"]) if one) if found["rows"] else ()
    numbers = [name for name in columns if name not in GROUP]
    for name, known in [(found["column"], numbers), *((column, GROUP) for column, _ in rows)]:
        if name not in known:
            raise UsageError(f"--fail-if {text!r}: {unknown_name('column', name, known)}")
    return Condition(text, rows, found["column"], found["sign"], bound)


def _named(text: str, one: str) -> tuple[str, str]:
    column, equals, value = one.partition("=")
    if not equals:
        raise UsageError(f"--fail-if {text!r}: before the colon stand COLUMN=VALUE pairs; {_REMEDY}")
    return _ALIASES.get(column.strip(), column.strip()), value.strip()


def rows_that_meet(condition: Condition, board: pd.DataFrame) -> list[str]:
    """One line for each row of a scoreboard that meets a condition.

    A row without the number, such as a bound of an interval over one seed, counts as one that meets it, and so does a
    count of failures that runs without a verdict could bring there: what cannot be judged must not pass.

    Raises:
        UsageError: No row of the scoreboard is what the condition is about.
    """
    named = {name for name, _ in condition.rows} & {"method", "control"}
    chosen = board if named else board[~board["control"]]
    for name, value in condition.rows:
        chosen = chosen[[_is(one, value) for one in chosen[name]]]
    if chosen.empty:
        raise UsageError(f"--fail-if {condition.text!r}: no row of the scoreboard is like that; see vcpo-bench show")
    compare = _COMPARE[condition.sign]
    lines = []
    for row in chosen.to_dict("records"):
        found = float(row[condition.column])
        open_ended = int(row["total"] - row["judged"]) if condition.column in _JUDGED else 0
        if math.isnan(found) or compare(found, condition.bound) or compare(found + open_ended, condition.bound):
            known = "is missing" if math.isnan(found) else f"= {found:.4g}"
            known += f", and {open_ended} of {int(row['total'])} cells could not be judged" * bool(open_ended)
            lines.append(f"{_place(row)}: {condition.column} {known} ({condition.text})")
    return lines


def _is(value: object, text: str) -> bool:
    """Whether a value of the scoreboard is what was typed: `16`, `3e-4`, `true` or an expression."""
    if isinstance(value, bool):
        return _TRUTHS.get(text.lower()) is value
    try:
        return math.isclose(float(str(value)), float(text))
    except ValueError:
        return str(value) == text


def _place(row: Mapping[Any, object]) -> str:
    rate = learning_rate(float(str(row["lr"])))
    return f"{row['task']}, {row['regime']}, lag {row['staleness']}, lr {rate}, {row['method']}"
