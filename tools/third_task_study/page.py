"""Writes the tables and the page of the study of the third task.

    python tools/third_task_study/page.py RESULTS     # adds the runs to runs.csv, and says how many seeds are complete
    python tools/third_task_study/page.py --end       # when it has ended: everything that follows from runs.csv

Without `--end` no outcome is computed: whoever has seen one may not decide when to stop.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pandas as pd
from arm_study.filled_page import render
from phase_study.checks import checks
from phase_study.contrasts import MATCHED, SHUFFLED, rates, rewards
from phase_study.failures import failures
from phase_study.levels import level_table
from phase_study.page import LEAST_SEEDS
from phase_study.tables import boundaries, complete, counted, exponents, joined, run_table, shipped
from phase_study.wording import by_lag, ends, reach

from third_task_study.design import FOLDER, PLAN, RUNS
from third_task_study.wording import answer

TEXT = Path(__file__).with_name("page.md")


def made(runs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Every table of the study, from its runs."""
    bounds = boundaries(runs)
    return {
        "levels": level_table(bounds),
        "exponents": exponents(bounds),
        "rates": rates(runs, bounds, (MATCHED, SHUFFLED)),
        "rewards": rewards(bounds, ("tis",)),
        "checks": checks(runs),
        "failures": failures(runs),
    }


def write(runs: pd.DataFrame, folder: Path) -> None:
    """Write the tables and the page that follow from these runs."""
    tables = made(runs)
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False, float_format="%.6g")
    parts: dict[str, pd.DataFrame | str] = dict(tables)
    parts |= {"ends": ends(tables["levels"]), "reach": reach(tables["rates"])}
    parts |= {"levels": by_lag(tables["levels"], "largest_rate"), "answer": answer(tables)}
    parts |= {"seeds": str(runs["seed"].nunique()), "runs": str(len(runs))}
    (folder / "README.md").write_text(render(TEXT.read_text(encoding="utf-8"), parts), encoding="utf-8")


def refresh(folder: Path, end: bool) -> None:
    """Say how many seeds are complete; at the end, write what follows from the `runs.csv` of a folder."""
    runs = shipped(folder / RUNS.name)
    seeds = complete(runs, PLAN)
    print(f"{len(runs)} runs; complete seeds: {seeds}; at least {LEAST_SEEDS} are needed for a page")
    if end and len(seeds) >= LEAST_SEEDS:
        write(counted(runs, PLAN), folder)


def main() -> None:
    """Take the runs from a results folder if one is named, and write what follows from them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="?")
    parser.add_argument("--end", action="store_true", help="the study has ended: look at the outcomes, write the page")
    given = parser.parse_args()
    if given.results:
        whole = joined(shipped(RUNS), run_table(given.results))
        whole.to_csv(RUNS, index=False, float_format="%.10g")
    refresh(FOLDER, given.end)


if __name__ == "__main__":
    main()
