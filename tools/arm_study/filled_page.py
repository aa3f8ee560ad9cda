"""A page from its text and its tables: `{{name}}` in the text stands for a table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from study_pages.markdown_table import markdown


def render(text: str, tables: Mapping[str, pd.DataFrame | str]) -> str:
    """The page: its text with every table, or part that is made already, in its place.

    Raises:
        ValueError: A table has no place in the text, or a place no table.
    """
    for name, table in tables.items():
        if text.count(mark := "{{" + name + "}}") != 1:
            raise ValueError(f"the text needs {mark} once")
        made = table if isinstance(table, str) else markdown(table)
        text = text.replace(mark, made.rstrip())
    if "{{" in text:
        raise ValueError(f"no table for {text[text.index('{{') :].splitlines()[0]}")
    return text


def write(folder: Path, text: str, tables: Mapping[str, pd.DataFrame | str]) -> None:
    """Write README.md and one CSV file per table; parts that are text are on the page only."""
    for name, table in tables.items():
        if not isinstance(table, str):
            table.to_csv(folder / f"{name}.csv", index=False, float_format="%.6g")
    (folder / "README.md").write_text(render(text, tables), encoding="utf-8")
