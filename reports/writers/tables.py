"""The results as plain tables for other programs: CSV, Parquet, or LaTeX."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from vcpo_bench.analysis.csv_text import without_formulas
from vcpo_bench.errors import UsageError
from vcpo_bench.files.atomic import replacing
from vcpo_bench.progress import track
from vcpo_bench.reports.report import build
from vcpo_bench.reports.study import Study, open_study
from vcpo_bench.reports.writers.tex import write_tables

FORMS = ("csv", "parquet", "latex")


def export(results_folder: str | Path | Iterable[str | Path], out_dir: str | Path, form: str) -> list[Path]:
    """Write the results of one folder, or of several that are pooled, as tables.

    `csv` and `parquet`: `cells` (settings, outcome, summary), `scoreboard`, `steps`, `evals`, `lags` and,
    where recorded, `samples` and `scores` (by lm-eval), unrounded, with the cell's key in each; then a table
    `compare-*` per table of the comparison. `latex`: every table of the report (booktabs) and `macros.tex`.

    Args:
        results_folder: A folder that `vcpo-bench run` wrote, or several.
        out_dir: Created if need be.
        form: One of `FORMS`.

    Returns:
        The files written.

    Raises:
        UsageError: Unknown form, or no results.
    """
    if form not in FORMS:
        raise UsageError(f"no export form {form!r}: choose one of {', '.join(FORMS)}")
    study = open_study(results_folder)
    folder = Path(out_dir)
    folder.mkdir(parents=True, exist_ok=True)
    if form == "latex":
        return write_tables(build(study), folder)
    written = []
    found = tables(study)
    for name, table in track(found.items(), "writing tables", len(found)):
        path = folder / f"{name}.{form}"
        with replacing(path) as file:
            if form == "csv":
                without_formulas(table).to_csv(file, index=False)
            else:
                table.to_parquet(file, index=False)
        written.append(path)
    return written


def tables(study: Study) -> dict[str, pd.DataFrame]:
    """The exported tables by name; those without rows are left out."""
    results = study.results
    found = {"cells": study.cells, "scoreboard": study.board, "steps": results.steps, "evals": results.evals}
    found |= {"lags": results.lags, "samples": results.samples, "scores": results.lm_eval}
    found |= {
        f"compare-{name.replace('_', '-')}": _flat(table) for name, table in study.findings("compare").tables.items()
    }
    return {name: table for name, table in found.items() if len(table)}


def _flat(table: pd.DataFrame) -> pd.DataFrame:
    """Columns of dicts or lists as text, which every format can hold."""
    nested = [name for name in table if table[name].map(lambda value: isinstance(value, dict | list | tuple)).any()]
    return table.assign(**{str(name): table[name].map(str) for name in nested})
