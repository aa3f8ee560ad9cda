"""The analyses by name. Each is a module of this folder that declares an `ANALYSIS`: adding one takes one file."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from vcpo_bench.analysis.caveats import caveats
from vcpo_bench.analysis.commands.base import Analysis
from vcpo_bench.analysis.findings import Findings
from vcpo_bench.analysis.results import load
from vcpo_bench.errors import UsageError
from vcpo_bench.naming.grammar import unknown_name


@cache
def analyses() -> dict[str, Analysis]:
    """Every analysis by name."""
    modules = [importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__)]
    found: list[Analysis] = [module.ANALYSIS for module in modules if hasattr(module, "ANALYSIS")]
    return {one.name: one for one in found}


def run(name: str, folder: str | Path | Iterable[str | Path], include_partial: bool = False) -> Findings:
    """Run one analysis on a results folder (or several, pooled).

    Args:
        name: Of the analysis.
        folder: As `analysis.results.load`.
        include_partial: Also use running or interrupted cells.

    Returns:
        Statements, those about damaged files and mixed versions first, with their tables and documents.

    Raises:
        UsageError: There is no such analysis, or no results.
    """
    known = analyses()
    if name not in known:
        raise UsageError(unknown_name("analysis", name, known))
    results = load(folder, include_partial)
    found = known[name].function(results)
    before = caveats(results)
    needed = {one.table for one in before.statements}
    return Findings(
        found.tables | {table: rows for table, rows in before.tables.items() if table in needed},
        before.cells_behind | found.cells_behind,
        before.statements + found.statements,
        found.documents,
    )
