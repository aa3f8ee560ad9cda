"""Makes the study of configurations: no training, only the updates that other studies ship.

    python tools/configuration_study/page.py RESULTS     # unpacks their archives there, makes all tables and the page
    python tools/configuration_study/page.py             # the page, from the shipped tables

Both also write into the packaged detectors how often they were wrong in these studies.
A test fails when the page or the detectors are not current.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pandas as pd
from arm_study.filled_page import render

from configuration_study.blind import blindest, by_method
from configuration_study.design import FOLDER
from configuration_study.tables import TABLES, make, noted, supplement
from configuration_study.wording import parts
from vcpo_bench.analysis.monitoring.calibration import DEFAULTS
from vcpo_bench.errors import UsageError

TEXT = Path(__file__).with_name("page.md")
PLACEMENTS = Path("tables") / "placements.csv"


def take(results: Path, folder: Path) -> None:
    """Write every table."""
    for name, table in make(results).items():
        table.to_csv(folder / f"{name}.csv", index=False, float_format="%.6g")
    supplement(results, folder / "tables")


def refresh(folder: Path) -> None:
    """Write the page that follows from the shipped tables."""
    tables = {name: pd.read_csv(folder / f"{name}.csv") for name in TABLES}
    blind = by_method(pd.read_csv(folder / PLACEMENTS))
    page = render(TEXT.read_text(encoding="utf-8"), parts(tables) | {"blind": blind, "blindest": blindest(blind)})
    (folder / "README.md").write_text(page, encoding="utf-8")


def main() -> None:
    """Make the tables if a results folder is named, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="?")
    given = parser.parse_args()
    try:
        if given.results:
            take(given.results, FOLDER)
        refresh(FOLDER)
        detectors = pd.read_csv(FOLDER / "detectors.csv")
        DEFAULTS.write_text(noted(DEFAULTS.read_text(encoding="utf-8"), detectors), encoding="utf-8")
    except UsageError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
