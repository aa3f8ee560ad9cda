"""What a reader must know before anything else, as findings: damaged files and notes on comparability."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pandas as pd

from vcpo_bench.analysis.findings import NOTE, Findings, own_key
from vcpo_bench.analysis.results import Results

DAMAGE = "damage"
"""Topic of damaged or missing files."""


def caveats(results: Results, folder_name: Callable[[Path], str] = str) -> Findings:
    """Damaged files found so far, and notes on comparing the cells.

    Args:
        results: The cells; their tables should have been read, because damage is found by reading.
        folder_name: How to call a results folder; default: its path.

    Returns:
        Tables `problems` (columns `key`, `file`, `what`: one row per damaged file) and `cells`, with a statement per
        row and per note.
    """
    rows = [(one.key, f"{folder_name(one.folder)}/{one.file}", one.what) for one in results.problems]
    problems = pd.DataFrame(rows, columns=["key", "file", "what"])

    def concerned(damaged: pd.DataFrame) -> Iterable[str]:
        """The cell whose file it is; all cells for a file that is about all of them."""
        return damaged["key"] if damaged["key"].ne("").all() else results.cells["key"]

    found = Findings({"problems": problems, "cells": cell_table(results)}, {"problems": concerned, "cells": own_key})
    columns = ("key", "file", "what")
    for number, (_, file, what) in enumerate(rows):
        text = f"Damaged file: {file} {what}."
        found.statements.append(found.finding(DAMAGE, text, "problems", problems.iloc[[number]], columns))
    cells = found.tables["cells"]
    for note in results.notes:
        concern = cells[cells["key"].isin(note.keys)]
        if len(concern):  # a selection may have none of the cells that a note on the folder is about
            shown = tuple(dict.fromkeys(("key", *note.columns)))
            found.statements.append(found.finding(NOTE, note.text, "cells", concern, shown))
    return found


def cell_table(results: Results) -> pd.DataFrame:
    """The cells without their provenance and place on disk."""
    return results.cells.drop(columns=["provenance", "path"])


def note_on_recording(found: Findings, results: Results, text: str) -> None:
    """State what could not be computed because no cell recorded enough."""
    cells = cell_table(results)
    found.tables["cells"], found.cells_behind["cells"] = cells, own_key
    columns = tuple(name for name in ("key", "record") if name in cells)
    found.statements.append(found.finding(NOTE, text, "cells", cells, columns))
