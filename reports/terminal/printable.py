"""Text for a terminal: whatever a results folder or a log holds is shown, never obeyed."""

from __future__ import annotations

import unicodedata

LONGEST_LINE = 1000
"""Characters of an error or a warning."""

_OBEYED = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # controls, marks of direction, halves of characters, other line breaks
_KEPT = "\n\t"


def printable(text: str) -> str:
    r"""The text with every character that a terminal would obey, or that hides others, spelled out, such as `\x1b`."""
    return text if text.isprintable() else "".join(map(_spelled, text))


def one_printable_line(text: str) -> str:
    """The same without line breaks, its middle left out where it is longer than `LONGEST_LINE`."""
    line = printable(" ".join(text.split()))
    half = LONGEST_LINE // 2
    return line if len(line) <= LONGEST_LINE else f"{line[:half]} [...] {line[-half:]}"


def _spelled(letter: str) -> str:
    if letter in _KEPT or unicodedata.category(letter) not in _OBEYED:
        return letter
    return letter.encode("unicode_escape").decode()
