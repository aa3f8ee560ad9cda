"""Whether a page or table that ships is what its tool makes, whichever machine rounds."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
RELATIVE, ABSOLUTE = 1e-3, 1e-4
"""Of numbers in a table: the last bits of a sum depend on the machine, and a search ends a little elsewhere."""


def assert_alike(made: Path, there: Path, tool: str) -> None:
    """Fail unless two pages, or two CSV files, say the same but for the rounding of numbers.

    Args:
        made: What the tool makes now.
        there: What ships.
        tool: The command that makes it.
    """
    if made.suffix == ".csv":
        frames = (pd.read_csv(path) for path in (made, there))
        pd.testing.assert_frame_equal(*frames, rtol=RELATIVE, atol=ABSOLUTE, obj=f"{made.name}, made by {tool},")
        return
    assert same_text(made.read_text(encoding="utf-8"), there.read_text(encoding="utf-8")), f"run: {tool}"


def same_text(one: str, other: str) -> bool:
    """Whether two texts have the same words and whole numbers, and others differ by at most one in their last digit."""
    if _NUMBER.sub("#", one) != _NUMBER.sub("#", other):
        return False
    return all(_close(*pair) for pair in zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=True))


def _close(one: str, other: str) -> bool:
    steps = max(_last_digit(one), _last_digit(other))
    return one == other or abs(float(one) - float(other)) <= 1.001 * steps


def _last_digit(number: str) -> float:
    """What one more in the last digit is worth; 0 for a whole number, which is a count, a lag or an update."""
    mantissa, _, exponent = number.partition("e")
    decimals = len(mantissa.partition(".")[2])
    if not decimals and not exponent:
        return 0.0
    return float(10.0 ** (int(exponent or 0) - decimals))
