"""Writes the tables and pages of the short studies.

    python tools/short_studies/page.py RESULTS [--studies NAMES]   # adds to runs.csv of each whole study; what follows
    python tools/short_studies/page.py                             # what follows from the shipped runs.csv

A test fails when a page is not current. A study whose runs are not all there keeps its page as it is.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pandas as pd
from study_pages.markdown_table import markdown
from study_pages.markers import filled

from short_studies.catalog import chosen
from short_studies.collect import RUNS, joined, run_table, shipped, whole
from short_studies.study import Study, Tables

PAGE = "README.md"
TOOL = "tools/short_studies/page.py"
NOT_YET = "No runs yet."


def parts(study: Study) -> tuple[dict[str, str], Tables]:
    """The generated parts of a study's page, and its tables, from what ships."""
    path = study.folder / RUNS
    if not path.exists():
        return dict.fromkeys((*study.shown, "answer"), NOT_YET + "\n"), {}
    tables = study.tables(pd.read_csv(path))
    answer = "\n".join(f"- {sentence}" for sentence in study.answer(tables)) + "\n"
    return {name: markdown(table) for name, table in tables.items()} | {"answer": answer}, tables


def write(study: Study) -> None:
    """Write the tables and the page that follow from the shipped runs."""
    made, tables = parts(study)
    for name, table in tables.items():
        table.to_csv(study.folder / f"{name}.csv", index=False, float_format="%.6g")
    page = study.folder / PAGE
    page.write_text(filled(page.read_text(encoding="utf-8"), made, TOOL), encoding="utf-8")


def main() -> None:
    """Take the runs from a results folder if one is named, and write what follows from them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="?")
    parser.add_argument("--studies", default="")
    given = parser.parse_args()
    for study in chosen(given.studies):
        if given.results and (given.results / study.name / "cells").exists():
            runs = joined(study, shipped(study), run_table(study, given.results / study.name))
            if not whole(study, runs):
                print(f"{study.name}: {len(runs)} of {len(study.cells())} runs; its page stays as it is")
                continue
            runs.to_csv(study.folder / RUNS, index=False, float_format="%.6g")
        write(study)


if __name__ == "__main__":
    main()
