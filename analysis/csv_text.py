"""Tables for CSV files, which spreadsheets open: text of a stranger must stay text there."""

from __future__ import annotations

import pandas as pd

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What spreadsheets take for the beginning of a formula, whatever follows."""


def without_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """The table with an apostrophe before every text that a spreadsheet would run; numbers stay as they are."""
    texts = table.select_dtypes(include=["object", "string", "category"])
    safe = {str(name): texts[name].map(_inert) for name in texts}
    return table.assign(**safe).rename(columns=_inert)


def _inert(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
