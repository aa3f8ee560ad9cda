"""Reading the values of command-line flags, with one clear line for what cannot be read."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TypeVar

from vcpo_bench.errors import UsageError
from vcpo_bench.naming.grammar import split_list

T = TypeVar("T")
MOST_SEEDS = 10_000
"""Largest count of seeds: more is a slip of the finger, and every seed is at least one cell."""


def expressions(text: str) -> list[str]:
    """The expressions of a comma-separated list: `"clip,clip(low=0.1,high=0.2)"` has two; a trailing comma is ignored.

    Raises:
        UsageError: Brackets do not match, or an item is empty.
    """
    text = text.strip().removesuffix(",")
    return split_list(text) if text else []


def lags(text: str) -> list[int]:
    """`--staleness`: policy lags, whole numbers of optimizer updates.

    Raises:
        UsageError: The text is something else.
    """
    return _numbers(text, "--staleness", "a lag is a whole number of optimizer updates, 0 or more", _whole)


def seeds(text: str) -> list[int]:
    """`--seeds`: a count (`3` means 0,1,2), or a list of seeds (`3,4` or `7,`).

    Raises:
        UsageError: The text is something else.
    """
    values = _numbers(text, "--seeds", "give a count such as 3, or a list such as 0,1,2", _whole)
    if "," in text:
        return values
    if values == [0]:
        raise UsageError("--seeds 0: nothing to run; give a count of at least 1, or a list such as 0,1,2")
    if values[0] > MOST_SEEDS:
        raise UsageError(f"--seeds {values[0]}: at most {MOST_SEEDS} seeds in one grid; give a smaller count")
    return list(range(values[0]))


def rates(text: str) -> list[float]:
    """`--lr`: positive finite learning rates.

    Raises:
        UsageError: The text is something else.
    """
    return _numbers(text, "--lr", "a learning rate is a positive finite number such as 3e-4", _positive)


def updates(text: str) -> list[int]:
    """`--at`: numbers of updates done, 0 or more.

    Raises:
        UsageError: The text is something else.
    """
    return _numbers(text, "--at", "give numbers of updates done, such as 50,150", _whole)


def device(text: str) -> str:
    """`--device`: `cpu`, `cuda` or `cuda:N`.

    Raises:
        UsageError: The text is something else.
    """
    if not re.fullmatch(r"cpu|cuda(:[0-9]+)?", text):
        raise UsageError(f"--device {text}: choose cpu, cuda or cuda:N")
    return text


def every(text: str) -> int:
    """`--keep-checkpoints`: `every=50` means every 50 updates.

    Raises:
        UsageError: The text is something else.
    """
    name, _, number = text.partition("=")
    if name.strip() != "every" or not re.fullmatch("[0-9]{1,9}", number.strip()) or int(number) < 1:
        raise UsageError(f"--keep-checkpoints {text!r}: write every=N, N a number of updates, such as every=50")
    return int(number)


def _numbers(text: str, flag: str, remedy: str, read: Callable[[str], T]) -> list[T]:
    items = [item.strip() for item in text.split(",") if item.strip()]
    if not items:
        raise UsageError(f"{flag} {text!r}: the list is empty; {remedy}")
    values = []
    for item in items:
        try:
            values.append(read(item))
        except ValueError as error:
            raise UsageError(f"{flag} {item!r}: {remedy}") from error
    return values


def _whole(item: str) -> int:
    value = int(item)
    if value < 0:
        raise ValueError
    return value


def _positive(item: str) -> float:
    value = float(item)
    if not (math.isfinite(value) and value > 0):
        raise ValueError
    return value
