"""Lists of numbers as people type them: `1,16`, `1-16`, `1..64/7`, `1e-4..1e-3/5`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TypeVar

from vcpo_bench.errors import UsageError

T = TypeVar("T", int, float)

MOST = 1000
"""Largest number of values of one range: more is a slip of the finger."""

_EVERY = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
_RATIOS = re.compile(r"([^/]+?)\.\.([^/]+?)/([0-9]{1,9})")
_UNCOUNTED = re.compile(r"([^/]+?)\.\.([^/]+)")


def whole(item: str) -> int:
    """A whole number, 0 or more.

    Raises:
        ValueError: It is something else.
    """
    value = int(item)
    if value < 0:
        raise ValueError
    return value


def positive(item: str) -> float:
    """A positive finite number.

    Raises:
        ValueError: It is something else.
    """
    value = float(item)
    if not (math.isfinite(value) and value > 0):
        raise ValueError
    return value


def read_numbers(text: str, flag: str, remedy: str, read: Callable[[str], T]) -> list[T]:
    """The numbers of a comma-separated list, whose items may be ranges.

    Args:
        text: `A-B` stands for every whole number from A to B. `A..B/N` stands for N numbers from A to B at equal
            ratios, rounded to three digits, or to whole numbers of which each counts once.
        flag: Where it was typed, for the message.
        remedy: What to type instead; ends the message.
        read: Reads one item; raises ValueError.

    Raises:
        UsageError: The list is empty, or an item cannot be read.
    """
    items = [item.strip() for item in text.split(",") if item.strip()]
    if not items:
        raise UsageError(f"{flag} {text!r}: the list is empty; {remedy}")
    values: list[T] = []
    for item in items:
        try:
            values += _item(item, f"{flag} {item!r}", read)
        except UsageError:  # which is a ValueError as well, and says more
            raise
        except ValueError as error:
            raise UsageError(f"{flag} {item!r}: {remedy}") from error
    return values


def _item(item: str, where: str, read: Callable[[str], T]) -> list[T]:
    every, ratios = _EVERY.fullmatch(item), _RATIOS.fullmatch(item)
    if every:
        low, high = (int(end) for end in every.groups())
        _check(where, low, high, high - low + 1)
        return [read(str(value)) for value in range(low, high + 1)]
    if ratios:
        first, last, count = read(ratios[1]), read(ratios[2]), int(ratios[3])
        _check(where, first, last, count)
        if not first or count < 2:
            raise UsageError(f"{where}: equal ratios need a start above 0 and at least 2 values, such as 1..64/7")
        return _at_equal_ratios(first, last, count, read)
    if uncounted := _UNCOUNTED.fullmatch(item):
        for end in uncounted.groups():
            read(end)
        raise UsageError(f"{where}: says no number of values; write /N after it, such as {item}/5")
    return [read(item)]


def _check(where: str, low: float, high: float, count: int) -> None:
    if low > high:
        raise UsageError(f"{where}: the range ends below its start; write the smaller number first")
    if count > MOST:
        raise UsageError(f"{where}: {count} values, and at most {MOST} make sense in one grid; give fewer")


def _at_equal_ratios(first: T, last: T, count: int, read: Callable[[str], T]) -> list[T]:
    """From `first` to `last`; those between rounded, each once, in order."""
    whole = isinstance(first, int)
    between = [float(first) * (last / first) ** (place / (count - 1)) for place in range(1, count - 1)]
    values = [read(str(round(value)) if whole else f"{value:.3g}") for value in between]
    values.insert(0, first)
    values.append(last)
    return list(dict.fromkeys(values))
