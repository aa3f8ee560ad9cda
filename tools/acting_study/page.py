"""Writes the tables and the page of the acting study.

    python tools/acting_study/page.py RESULTS     # adds the runs to runs.csv, then writes everything that follows
    python tools/acting_study/page.py             # everything that follows from the shipped runs.csv

A run that the shipped table has already stays as it is there, whatever RESULTS says: branches rest on it. Until every
run has ended there is no page. A test fails when the page is not current.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pandas as pd
from arm_study.filled_page import render

from acting_study.by_rule import rule_table
from acting_study.tables import FOLDER, RUNS, complete, joined, run_table, shipped, treated
from acting_study.verdicts import made
from acting_study.wording import agreement, answer, by_rule

TEXT = Path(__file__).with_name("page.md")


def write(runs: pd.DataFrame, folder: Path) -> None:
    """Write the tables and the page that follow from the runs of a complete study."""
    tables = {**made(runs), "rule": rule_table(treated(runs))}
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False, float_format="%.6g")
    waves = tables["waves"].drop(columns=["question", "apart"])
    parts: dict[str, pd.DataFrame | str] = {**tables, "waves": waves}
    parts |= {"answer": answer(tables), "agreement": agreement(tables), "by_rule": by_rule(tables["rule"])}
    (folder / "README.md").write_text(render(TEXT.read_text(encoding="utf-8"), parts), encoding="utf-8")


def refresh(folder: Path) -> None:
    """Write what follows from the `runs.csv` of a folder, if every run has ended."""
    runs = shipped(folder / RUNS.name)
    whole = complete(runs)
    print(f"{len(runs)} runs; {'complete' if whole else 'not complete, so there is no page'}")
    if whole:
        write(runs, folder)


def main(arguments: list[str]) -> None:
    """Take the runs from a results folder if one is named, and write what follows from them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="?")
    results: Path | None = parser.parse_args(arguments).results
    if results:
        found = run_table(results)
        if found.empty:
            parser.error(f"{results} holds no runs of this study")
        joined(shipped(RUNS), found).to_csv(RUNS, index=False, float_format="%.10g")
    refresh(FOLDER)


if __name__ == "__main__":
    main(sys.argv[1:])
