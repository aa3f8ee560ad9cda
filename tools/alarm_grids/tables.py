"""Tunes alarms on some grids and judges them on another: `python tools/alarm_grids/tables.py RESULTS`.

Unpacks the archives of eight studies into RESULTS, a folder that is not there yet, and writes the tables of
docs/studies/calibration/grids. No training.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pandas as pd
from configuration_study.design import STUDIES

from alarm_grids.answers import contrasts, means, without
from alarm_grids.grids import grids_in, pool
from alarm_grids.judging import judged
from vcpo_bench.errors import UsageError

FOLDER = STUDIES / "calibration" / "grids"


def follow(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """What follows from the rates on each held-out grid."""
    return {"means": means(table), "contrasts": contrasts(table), "without": without(table)}


def main() -> None:
    """Judge and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    try:
        grids = grids_in(parser.parse_args().results)
    except UsageError as error:
        parser.error(str(error))
    FOLDER.mkdir(exist_ok=True)
    table = judged(grids, pool(grids))
    for name, one in {"held_out": table, **follow(table)}.items():
        one.to_csv(FOLDER / f"{name}.csv", index=False, float_format="%.6g")


if __name__ == "__main__":
    main()
