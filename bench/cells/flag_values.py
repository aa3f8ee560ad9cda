"""Reading the lists of a command line, with one clear line for what cannot be read."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TypeVar, cast, get_args

from vcpo_bench.errors import UsageError
from vcpo_bench.records import Level

T = TypeVar("T")


def split_top_level(text: str) -> list[str]:
    """Split at commas outside parentheses: `"clip,clip(low=0.1,high=0.2)"` has two items; blank ones are dropped."""
    items, depth, current = [], 0, ""
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth <= 0:
            items.append(current)
            current = ""
        else:
            current += character
    items.append(current)
    return [item.strip() for item in items if item.strip()]


def lags(text: str) -> list[int]:
    """`--staleness`: whole numbers of optimizer updates, 0 or more."""
    return _numbers(text, "--staleness", "a lag is a whole number of optimizer updates, 0 or more", _whole)


def seeds(text: str) -> list[int]:
    """`--seeds`: a count (`3` means 0,1,2) or a list of seeds (`3,4` or `7,`)."""
    values = _numbers(text, "--seeds", "give a count such as 3, or a list such as 0,1,2", _whole)
    if "," in text:
        return values
    if values == [0]:
        raise UsageError("--seeds 0: nothing to run; give a count of at least 1, or a list such as 0,1,2")
    return list(range(values[0]))


def rates(text: str) -> list[float]:
    """`--lr`: positive finite learning rates."""
    return _numbers(text, "--lr", "a learning rate is a positive finite number such as 3e-4", _positive)


def updates(text: str) -> list[int]:
    """`--at`: how many updates are done, 0 or more."""
    return _numbers(text, "--at", "give numbers of updates, such as 50,150", _whole)


def level(text: str) -> Level:
    """`--record`: how much is recorded."""
    for known in get_args(Level):
        if text == known:
            return cast(Level, known)
    raise UsageError(f"--record {text!r}: choose one of {', '.join(get_args(Level))}")


def device(text: str) -> str:
    """`--device`: `cpu`, `cuda` or `cuda:N`."""
    if not re.fullmatch(r"cpu|cuda(:\d+)?", text):
        raise UsageError(f"--device {text}: choose cpu, cuda or cuda:N")
    return text


def every(text: str) -> int:
    """`--keep-checkpoints`: `every=50`, in updates."""
    name, _, number = text.partition("=")
    if name.strip() != "every" or not number.strip().isdigit() or int(number) < 1:
        raise UsageError(f"--keep-checkpoints {text!r}: write every=N with N updates, such as every=50")
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
