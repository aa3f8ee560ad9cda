"""Writes the tables and the page of the direction study.

    python tools/direction_study/page.py RESULTS     # takes the runs from a results folder, then writes what follows
    python tools/direction_study/page.py             # everything that follows from the shipped tables

Until every run has ended there is no page. A test fails when the page is not current.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pandas as pd
from arm_study.filled_page import render
from boundary_study.by_task import wide
from boundary_study.tables import FOLDER, Tables

from direction_study.tables import HOME, Measured
from direction_study.verdicts import made
from direction_study.wording import answer
from vcpo_bench.errors import UsageError

TEXT = Path(__file__).with_name("page.md")


def take(results: Path, folder: Path) -> None:
    """Write what ships from a results folder.

    Raises:
        UsageError: The study is not complete: until then nobody looks at an outcome.
    """
    found = Measured.of(results)
    if found.missing:
        raise UsageError(f"{results} is not complete: {found.missing}")
    found.write(folder)


def refresh(folder: Path) -> None:
    """Write the tables and the page that follow from the shipped ones, if every run has ended."""
    measured = Measured.read(folder)
    if missing := measured.missing:
        print(f"no page: {missing}")
    else:
        _write(made(measured, Tables.read(FOLDER)), folder)


def _write(tables: dict[str, pd.DataFrame], folder: Path) -> None:
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False, float_format="%.6g")
    parts: dict[str, pd.DataFrame | str] = {name: table for name, table in tables.items() if name != "machines"}
    parts |= {"answer": answer(tables), "tasks": wide(tables["tasks"])}
    parts["processor"] = str(tables["machines"].loc[0, "processor"])
    (folder / "README.md").write_text(render(TEXT.read_text(encoding="utf-8"), parts), encoding="utf-8")


def main() -> None:
    """Take the runs from a results folder if one is named, and write what follows from them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="?")
    given = parser.parse_args()
    try:
        if given.results:
            take(given.results, HOME)
        refresh(HOME)
    except UsageError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
