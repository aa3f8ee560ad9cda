"""Numbers as loggers write them: floats, `NaN`, `Infinity`, `np.float64(0.2)`, `tensor(0.5)`."""

from __future__ import annotations

import codecs
import re
from pathlib import Path

_WRAPPED = re.compile(r"(?:np|numpy|torch)?\.?[a-z]+\d*\(\s*([^,()\s]+)")
_LONGEST = 400
"""Characters of the longest text that can be a number; a longer one is a completion."""


def number(raw: object) -> float | None:
    """A logged value as a float; None where it is no number (text, lists, images)."""
    if isinstance(raw, bool):
        return float(raw)
    if isinstance(raw, int | float):
        return _as_float(raw)
    if not isinstance(raw, str) or len(raw) > _LONGEST:
        return None
    text = raw.strip()
    try:
        return float(text)
    except ValueError:
        pass
    wrapped = _WRAPPED.match(text)
    if wrapped is None or not text.endswith(")"):
        return None
    try:
        return float(wrapped.group(1))
    except ValueError:
        return None


def step_number(raw: object) -> float | None:
    """A logged step as a float, also that of ms-swift's `380/500`; None where it is no number."""
    return number(raw.partition("/")[0]) if isinstance(raw, str) else number(raw)


def _as_float(raw: float) -> float | None:
    try:
        return float(raw)
    except OverflowError:
        return None


_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def encoding_of(path: Path) -> str:
    """UTF-16 where the file says so, as what PowerShell redirects to a file does; else UTF-8, its mark left out."""
    with path.open("rb") as file:
        return "utf-16" if file.read(2) in _UTF16 else "utf-8-sig"
