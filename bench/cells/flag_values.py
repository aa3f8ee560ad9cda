"""Reading the values of command-line flags, with one clear line for what cannot be read."""

from __future__ import annotations

import re

from vcpo_bench.bench.cells.number_lists import positive, read_numbers, whole
from vcpo_bench.errors import UsageError
from vcpo_bench.naming.grammar import split_list

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
    """`--staleness`: policy lags, whole numbers of optimizer updates: `1,16`, `1-16`, `1..64/7`.

    Raises:
        UsageError: The text is something else.
    """
    return read_numbers(text, "--staleness", "a lag is a whole number of optimizer updates, 0 or more", whole)


def seeds(text: str) -> list[int]:
    """`--seeds`: a count (`3` means 0,1,2), a list of seeds (`3,4` or `7,`) or a range (`3-7`).

    Raises:
        UsageError: The text is something else.
    """
    values = read_numbers(text, "--seeds", "give a count such as 3, or a list such as 0,1,2", whole)
    if any(mark in text for mark in (",", "-", "..")):
        return values
    if values == [0]:
        raise UsageError("--seeds 0: nothing to run; give a count of at least 1, or a list such as 0,1,2")
    if values[0] > MOST_SEEDS:
        raise UsageError(f"--seeds {values[0]}: at most {MOST_SEEDS} seeds in one grid; give a smaller count")
    return list(range(values[0]))


def rates(text: str) -> list[float]:
    """`--lr`: positive finite learning rates: `1e-4,3e-4`, `1e-4..1e-3/5`.

    Raises:
        UsageError: The text is something else.
    """
    return read_numbers(text, "--lr", "a learning rate is a positive finite number such as 3e-4", positive)


def updates(text: str) -> list[int]:
    """`--at`: numbers of updates done, 0 or more.

    Raises:
        UsageError: The text is something else.
    """
    return read_numbers(text, "--at", "give numbers of updates done, such as 50,150", whole)


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
