"""The general analysis of prediction on the main runs of the places that count.

    python tools/boundary_study/supplement.py RESULTS --end

RESULTS is a results folder of the study, or its unpacked archives. Writes `tables/` beside the page. Registered as
exploratory: these tables have no bar and give no verdict. `--end` says that the study has ended: whoever has seen an
outcome may not decide when to stop.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import pandas as pd

from boundary_study.alarms import PLACE
from boundary_study.areas import panels
from boundary_study.design import SEEDS
from boundary_study.tables import FOLDER, SIGNALS, Tables
from boundary_study.verdicts import enough
from vcpo_bench.analysis.commands.prediction import analyze_prediction
from vcpo_bench.analysis.results import Results, load
from vcpo_bench.errors import UsageError

TABLES = (
    "auroc",
    "calibration",
    "definitions",
    "episodes",
    "false_alarms",
    "generalization",
    "hazard",
    "increment",
    "matching",
    "misses",
    "models",
    "nulls",
    "operating",
    "td_auc",
    "thresholds",
    "verdicts",
)
"""Of `analyze_prediction`, those that the fourteen points ask for and `runs.csv` does not have."""
RUN_BY_RUN = ("misses", "false_alarms")
"""Tables of single runs, of the signals of this study only."""
SENTENCES = "findings.txt"


def main_runs(results: Path) -> Results:
    """The main runs of the places that count.

    Args:
        results: Results folder.

    Raises:
        UsageError: Too few places count, so that nobody may look at an outcome yet.
    """
    found = panels(Tables.of(results))
    if not enough(found):
        raise UsageError(f"{len(found)} places count: too few for a page, and so for these tables")
    loaded = load(results)
    cells = loaded.cells
    own = pd.Series(False, index=cells.index)
    for place, panel in found.items():
        same = (cells[PLACE] == pd.Series([place.task, place.method, place.staleness], index=PLACE)).all(axis=1)
        own |= same & np.isclose(cells["lr"], panel.runs["lr"].iloc[0], rtol=1e-5)
    return loaded.select(cells.loc[own & cells["seed"].isin(SEEDS), "key"])


def write(results: Path, folder: Path) -> None:
    """Write the tables and what they say, as sentences."""
    found = analyze_prediction(main_runs(results))
    folder.mkdir(parents=True, exist_ok=True)
    for name in TABLES:
        table = found.tables[name]
        kept = table[table["signal"].isin(SIGNALS)] if name in RUN_BY_RUN else table
        kept.to_csv(folder / f"{name}.csv", index=False, float_format="%.5g")
    sentences = "".join(f"{statement.text}\n" for statement in found.statements)
    (folder / SENTENCES).write_text(sentences, encoding="utf-8")


def main() -> None:
    """Read the arguments and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--end", action="store_true", required=True, help="the study has ended: look at the outcomes")
    given = parser.parse_args()
    try:
        write(given.results, FOLDER / "tables")
    except UsageError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
