"""The analyses that `vcpo-bench lab analyze` offers: one file each, found by listing this folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from vcpo_bench.analysis.caveats import caveats
from vcpo_bench.analysis.commands.base import ANALYSES, Analysis
from vcpo_bench.analysis.findings import Findings
from vcpo_bench.analysis.results import Results, load_comparable

__all__ = ["ANALYSES", "Analysis", "run", "run_on"]


def run(name: str, folder: str | Path | Iterable[str | Path], include_partial: bool = False) -> Findings:
    """Run one analysis on a results folder (or several, pooled).

    Args:
        name: Of the analysis, with parameters if it has any: `compare(replications=500)`.
        folder: As `analysis.results.load`.
        include_partial: Also use running or interrupted cells.

    Returns:
        Statements, those about damaged files and mixed versions first, with their tables.

    Raises:
        UsageError: There is no such analysis, no results, or results of different versions of the rules.
    """
    return run_on(ANALYSES.parse(name), load_comparable(folder, include_partial))


def run_on(analysis: Analysis, results: Results) -> Findings:
    """Run an analysis on results that are loaded; statements about damaged files and mixed versions come first."""
    found = analysis.run(results)
    before = caveats(results)
    needed = {one.table for one in before.statements}
    return Findings(
        found.tables | {table: rows for table, rows in before.tables.items() if table in needed},
        before.cells_behind | found.cells_behind,
        before.statements + found.statements,
    )
