"""In which encoding a log was written."""

from __future__ import annotations

import codecs
from pathlib import Path

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def encoding_of(path: Path) -> str:
    """UTF-16 where the file says so, as what PowerShell redirects to a file does; else UTF-8, its mark left out."""
    with path.open("rb") as file:
        return "utf-16" if file.read(2) in _UTF16 else "utf-8-sig"
