"""Writes the tables, the picture and the page of the phase study.

    python tools/phase_study/page.py RESULTS     # adds the runs to runs.csv, then writes everything that follows
    python tools/phase_study/page.py             # everything that follows from the shipped runs.csv

Until enough seeds are complete there is no page. A test fails when the page is not current.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import pandas as pd
from contrasts import horizons, rates, rewards
from earnings import earnings
from levels import level_table
from study_pages.markdown_table import markdown
from study_pages.markers import filled
from tables import FOLDER, RUNS, boundaries, checks, complete, exponents, joined, run_table, shipped
from wording import answer, by_lag

PAGE = FOLDER / "README.md"
TOOL = "tools/phase_study/page.py"
LEAST_SEEDS = 4
"""As registered."""


def made(runs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Every table of the study, from its runs."""
    bounds = boundaries(runs)
    return {
        "levels": level_table(bounds),
        "earnings": earnings(runs),
        "exponents": exponents(bounds),
        "rates": rates(bounds),
        "rewards": rewards(bounds),
        "horizons": horizons(runs),
        "checks": checks(runs),
        "failures": failures(runs),
    }


def failures(runs: pd.DataFrame) -> pd.DataFrame:
    """When failing runs fall, per method and lag: before the lag is reached or after, and whether they come back."""
    failed = runs[runs["failed"] & (runs["staleness"] > 0)]
    early = (failed["onset"] <= failed["staleness"]).groupby([failed["method"], failed["staleness"]], sort=False).sum()
    grouped = failed.groupby(["method", "staleness"], sort=False)
    table = grouped.agg(failed=("failed", "size"), median_onset=("onset", "median")).assign(before_the_lag=early)
    table["rebounds"] = grouped["event"].apply(lambda event: int((event == "collapse with rebound").sum()))
    return table.reset_index()


def render(tables: dict[str, pd.DataFrame]) -> str:
    """The page with its tables made anew."""
    parts = {name: markdown(table) for name, table in tables.items() if name not in ("levels", "earnings")}
    parts |= {"levels": by_lag(tables["levels"], "largest_rate"), "earnings": by_lag(tables["earnings"], "reward")}
    return filled(PAGE.read_text(encoding="utf-8"), parts | {"answer": answer(tables)}, TOOL)


def write(runs: pd.DataFrame) -> None:
    """Write the tables, the picture and the page that follow from these runs."""
    from picture import draw

    tables = made(runs)
    for name, table in tables.items():
        table.to_csv(FOLDER / f"{name}.csv", index=False, float_format="%.6g")
    draw(tables["levels"], tables["earnings"], FOLDER / "boundary.png")
    PAGE.write_text(render(tables), encoding="utf-8")


def main(arguments: list[str]) -> None:
    """Take the runs from a results folder if one is named, and write what follows from them."""
    if arguments:
        joined(shipped(RUNS), run_table(Path(arguments[0]))).to_csv(RUNS, index=False, float_format="%.10g")
    runs = shipped(RUNS)
    seeds = complete(runs)
    print(f"{len(runs)} runs; complete seeds: {seeds}; at least {LEAST_SEEDS} are needed for a page")
    if len(seeds) >= LEAST_SEEDS:
        write(runs[runs["seed"].isin(seeds)])


if __name__ == "__main__":
    main(sys.argv[1:])
