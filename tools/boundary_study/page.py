"""Writes the tables and the page of the boundary study, and the tables of its registration.

    python tools/boundary_study/page.py RESULTS     # adds the runs to the shipped tables, and counts places
    python tools/boundary_study/page.py --end       # when it has ended, after supplement.py --end: the page
    python tools/boundary_study/page.py --register  # the tables of the registration instead; only before the first run

Until enough places count there is no page. A test fails when the page is not current.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pandas as pd
from arm_study.filled_page import render
from study_pages.markdown_table import markdown
from study_pages.markers import filled

from boundary_study.areas import panels
from boundary_study.by_task import disagreement, wide
from boundary_study.coverage import COVERAGE
from boundary_study.design import LEAST_GROUPS, LEAST_PLACES, PLACES
from boundary_study.tables import FOLDER, SIGNALS, Tables, joined
from boundary_study.verdicts import enough, made
from boundary_study.wording import answer, null_sentence, reversed_signals
from vcpo_bench.analysis.monitoring.signal import all_signals
from vcpo_bench.errors import UsageError

TEXT = Path(__file__).with_name("page.md")
REGISTRATION = FOLDER / "registration.md"
TOOL = "tools/boundary_study/page.py"


def registration(text: str) -> str:
    """The registration with its tables of places, signals and simulated coverage made anew."""
    guesses = [(place.task, place.method, place.staleness, place.guess) for place in PLACES]
    places = pd.DataFrame(guesses, columns=["task", "method", "lag", "lr"])
    known = all_signals()
    summaries = [(name, known[name].summary.replace("|", "\\|")) for name in SIGNALS]
    signals = pd.DataFrame(summaries, columns=["signal", "a high value means"])
    coverage = markdown(pd.read_csv(COVERAGE))
    return filled(text, {"places": markdown(places), "signals": markdown(signals), "coverage": coverage}, TOOL)


def main() -> None:
    """Take the runs from a results folder if one is named, and write what follows from them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="?")
    parser.add_argument("--register", action="store_true")
    parser.add_argument(
        "--end", action="store_true", help="the study has ended: look at the outcomes and write the page"
    )
    given = parser.parse_args()
    try:
        _act(given)
    except UsageError as error:
        parser.error(str(error))


def _act(given: argparse.Namespace) -> None:
    if given.register:
        REGISTRATION.write_text(registration(REGISTRATION.read_text(encoding="utf-8")), encoding="utf-8")
        return
    if given.results:
        joined(Tables.read(FOLDER), Tables.of(given.results)).write(FOLDER)
    refresh(FOLDER, given.end)


def refresh(folder: Path, end: bool) -> None:
    """Say how many places of a folder's tables count.

    Args:
        folder: Of the tables.
        end: Also write the page and its tables, if enough places count. Before the end no AUROC is computed: whoever
            has seen one may not decide when to stop.
    """
    tables = Tables.read(folder)
    counting = panels(tables)
    groups = len({place.group for place in counting})
    print(
        f"{len(tables.runs)} runs; places that count: {len(counting)}, of {groups} groups; at least {LEAST_PLACES} "
        f"places of {LEAST_GROUPS} groups are needed for a page"
    )
    if end and enough(counting):
        write(folder, made(tables))


def write(folder: Path, tables: Mapping[str, pd.DataFrame]) -> None:
    """Write the page, and one CSV file per table.

    Args:
        folder: Of the study, in which `supplement.py` has made its tables.
        tables: Of `verdicts.made`.

    Raises:
        UsageError: `supplement.py` has not made its tables; nothing is written.
    """
    nulls = _nulls(folder / "tables" / "nulls.csv")
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False, float_format="%.6g")
    tasks = tables["tasks"]
    parts: dict[str, pd.DataFrame | str] = {name: table for name, table in tables.items() if name != "chance"}
    parts |= {"tasks": wide(tasks), "disagreement": disagreement(tasks), "nulls": null_sentence(nulls)}
    parts |= {"answer": answer(tables), "reversed": reversed_signals(tables)}
    (folder / "README.md").write_text(render(TEXT.read_text(encoding="utf-8"), parts), encoding="utf-8")


def _nulls(path: Path) -> pd.DataFrame:
    """The table of null models."""
    if not path.exists():
        raise UsageError(f"{path} is missing; first run: python tools/boundary_study/supplement.py RESULTS --end")
    return pd.read_csv(path)


if __name__ == "__main__":
    main()
