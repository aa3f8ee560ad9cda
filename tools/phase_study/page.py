"""Writes the tables, the picture and the page of the phase study.

    python tools/phase_study/page.py RESULTS     # adds the runs to runs.csv, then writes everything that follows
    python tools/phase_study/page.py             # everything that follows from the shipped runs.csv

Until enough seeds are complete there is no page. A test fails when the page is not current. Facts 6 and 23 of the
scorecard read its tables: afterwards run `python tools/scorecard/page.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pandas as pd
from arm_study.filled_page import render

from phase_study.checks import checks
from phase_study.contrasts import rates, rewards
from phase_study.earlier import EARLIER, agreement, moved
from phase_study.earnings import earnings
from phase_study.failures import failures
from phase_study.horizons import horizons
from phase_study.levels import level_table
from phase_study.same_rate import same_rate
from phase_study.tables import FOLDER, RUNS, boundaries, complete, counted, exponents, joined, run_table, shipped
from phase_study.waves import ANSWERS, SECOND, section
from phase_study.wording import answer, by_lag, counted_verdicts, ends, reach

TEXT = Path(__file__).with_name("page.md")
LEAST_SEEDS = 4
"""As registered."""
AGAIN = range(4)
"""Seeds whose runs were made again."""


def made(runs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Every table of the study, from its runs."""
    bounds = boundaries(runs)
    return {
        "levels": level_table(bounds),
        "earnings": earnings(runs),
        "exponents": exponents(bounds),
        "rates": rates(runs, bounds),
        "same_rate": same_rate(runs),
        "rewards": rewards(bounds),
        "horizons": horizons(runs),
        "checks": checks(runs),
        "failures": failures(runs),
    }


def page(tables: dict[str, pd.DataFrame], runs: pd.DataFrame, folder: Path = FOLDER) -> str:
    """The page from its text, its tables, its runs, and the answers of the second wave once the folder has them."""
    parts: dict[str, pd.DataFrame | str] = dict(tables)
    before = shipped(EARLIER)
    others = moved(tables, made(counted(before)))
    parts |= {"again": agreement(runs, before, AGAIN), "moved": others if len(others) else "None.\n"}
    parts |= {"ends": ends(tables["levels"]), "reach": reach(tables["rates"]), "verdicts": counted_verdicts(tables)}
    parts |= {"levels": by_lag(tables["levels"], "largest_rate"), "earnings": by_lag(tables["earnings"], "reward")}
    parts["second"] = section(folder / SECOND.name / ANSWERS)
    seeds = str(runs["seed"].nunique())
    return render(TEXT.read_text(encoding="utf-8"), parts | {"answer": answer(tables), "seeds": seeds})


def write(runs: pd.DataFrame, folder: Path) -> None:
    """Write the tables, the picture and the page that follow from these runs."""
    from phase_study.picture import draw

    tables = made(runs)
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False, float_format="%.6g")
    draw(tables["levels"], folder / "boundary.png")
    (folder / "README.md").write_text(page(tables, runs, folder), encoding="utf-8")


def refresh(folder: Path) -> None:
    """Write what follows from the `runs.csv` of a folder, if enough seeds are complete."""
    runs = shipped(folder / RUNS.name)
    seeds = complete(runs)
    print(f"{len(runs)} runs; complete seeds: {seeds}; at least {LEAST_SEEDS} are needed for a page")
    if len(seeds) >= LEAST_SEEDS:
        write(counted(runs), folder)


def main(arguments: list[str]) -> None:
    """Take the runs from a results folder if one is named, and write what follows from them."""
    if arguments:
        joined(shipped(RUNS), run_table(Path(arguments[0]))).to_csv(RUNS, index=False, float_format="%.10g")
    refresh(FOLDER)


if __name__ == "__main__":
    main(sys.argv[1:])
