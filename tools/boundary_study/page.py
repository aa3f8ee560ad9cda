"""Writes the tables and the page of the boundary study, and the tables of its registration.

    python tools/boundary_study/page.py RESULTS     # adds the runs to the shipped tables, then writes what follows
    python tools/boundary_study/page.py             # what follows from the shipped tables
    python tools/boundary_study/page.py --register  # the tables of the registration instead; only before the first run

Until enough places count there is no page. A test fails when the page is not current.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pandas as pd
from arm_study.filled_page import write
from study_pages.markdown_table import markdown
from study_pages.markers import filled

from boundary_study.areas import panels
from boundary_study.design import LEAST_PLACES, PLACES
from boundary_study.tables import FOLDER, SIGNALS, Tables, joined
from boundary_study.verdicts import made
from vcpo_bench.analysis.monitoring.signal import all_signals

TEXT = Path(__file__).with_name("page.md")
REGISTRATION = FOLDER / "registration.md"
TOOL = "tools/boundary_study/page.py"


def registration(text: str) -> str:
    """The registration with its tables of places and signals made anew."""
    guesses = [(place.task, place.method, place.staleness, place.guess) for place in PLACES]
    places = pd.DataFrame(guesses, columns=["task", "method", "lag", "lr"])
    known = all_signals()
    summaries = [(name, known[name].summary.replace("|", "\\|")) for name in SIGNALS]
    signals = pd.DataFrame(summaries, columns=["signal", "a high value means"])
    return filled(text, {"places": markdown(places), "signals": markdown(signals)}, TOOL)


def main() -> None:
    """Take the runs from a results folder if one is named, and write what follows from them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="?")
    parser.add_argument("--register", action="store_true")
    given = parser.parse_args()
    if given.register:
        REGISTRATION.write_text(registration(REGISTRATION.read_text(encoding="utf-8")), encoding="utf-8")
        return
    if given.results:
        joined(Tables.read(FOLDER), Tables.of(given.results)).write(FOLDER)
    refresh(FOLDER)


def refresh(folder: Path) -> None:
    """Write the page and the tables that follow from the tables of a folder, if enough places count."""
    tables = Tables.read(folder)
    counting = len(panels(tables))
    print(f"{len(tables.runs)} runs; places that count: {counting}; at least {LEAST_PLACES} are needed for a page")
    if counting >= LEAST_PLACES:
        write(folder, TEXT.read_text(encoding="utf-8"), made(tables))


if __name__ == "__main__":
    main()
