"""Asks the registered statements: `python tools/confirmation_study/page.py RESULTS`.

Unpacks the archives of the new seeds into RESULTS, a folder that is not there yet, and writes the tables and the page.
With `--power` it reads the seeds that the statements come from instead, and writes `known.csv` and `power.csv`, which
were registered. No training.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pandas as pd
from arm_study.filled_page import render
from configuration_study.panels import panel_of
from configuration_study.tables import of_seeds, unpacked
from phase_study.second import ended_seeds

from confirmation_study.areas import areas, over_methods
from confirmation_study.design import ASKED, FOLDER, KNOWN, NEW
from confirmation_study.judging import judged
from confirmation_study.testing import powers
from confirmation_study.units import prepared
from confirmation_study.wording import answer, beside, meaning
from vcpo_bench.analysis.prediction.panel import Panel
from vcpo_bench.analysis.results import Results
from vcpo_bench.errors import UsageError

TEXT = Path(__file__).with_name("page.md")
FRAGILE = 0
"""The first seed, whose search began without earlier ones: power is given without it too."""


def panel_from(results: Results) -> Panel:
    """The runs at a lag."""
    return prepared(panel_of(results))


def known_tables(results: Results) -> dict[str, pd.DataFrame]:
    """What was known before, and the power that follows from it."""
    found = judged(panel_from(results))
    seeds = sorted(set(results.cells["seed"]) - {FRAGILE})
    without = powers(judged(panel_from(of_seeds(results, seeds))), len(ASKED))
    power = powers(found, len(ASKED)).assign(power_first_without_0=without["power_first"])
    return {"known": found, "power": power}


def new_tables(results: Results) -> dict[str, pd.DataFrame]:
    """The answers, and the numbers beside them.

    Raises:
        UsageError: The seeds are not those that are asked, or not all of their searches have ended.
    """
    if ended_seeds() != list(ASKED) or sorted(set(results.cells["seed"])) != list(ASKED):
        raise UsageError(
            f"the statements are asked once, of the complete seeds {ASKED[0]} to {ASKED[-1]} and no others"
        )
    panel = panel_from(results)
    return {"answers": judged(panel), "areas": areas(panel), "methods": over_methods(panel)}


def page(folder: Path = FOLDER) -> str:
    """The page, from the tables that ship."""
    names = ("answers", "known", "power", "areas", "methods")
    tables = {name: pd.read_csv(folder / f"{name}.csv") for name in names}
    new = tables["answers"]
    parts: dict[str, pd.DataFrame | str] = {"answer": answer(new), "meaning": meaning(new)}
    parts |= {"beside": beside(new, tables["known"], tables["power"])}
    return render(TEXT.read_text(encoding="utf-8"), parts | {name: tables[name] for name in ("areas", "methods")})


def main() -> None:
    """Read the arguments, ask, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="?", help="none: only the page, from the tables that ship")
    parser.add_argument("--power", action="store_true")
    given = parser.parse_args()
    try:
        if given.results:
            ((_, runs),) = unpacked(given.results, [KNOWN if given.power else NEW])
            for name, table in (known_tables(runs) if given.power else new_tables(runs)).items():
                table.to_csv(FOLDER / f"{name}.csv", index=False, float_format="%.6g")
    except UsageError as error:
        parser.error(str(error))
    if not given.power:
        (FOLDER / "README.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
