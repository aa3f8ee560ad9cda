"""Calibrates the packaged detectors anew: python tools/make_calibration.py [RESULTS].

Runs `configs/calibration.yaml` (cells that RESULTS, by default `results/calibration`, has already are kept), tunes and
judges the detectors, and writes `analysis/monitoring/default_detectors.json`, the tables of `docs/studies/calibration`
and the table in `docs/monitor.md`. About half an hour on two cores. `--no-run` takes the cells that are there.
`--again` leaves the packaged detectors as they are, and writes what their grid says when it is run again into `again/`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
from calibration_candidates import by_candidates

from vcpo_bench.analysis.collapse.rule import events
from vcpo_bench.analysis.monitoring.calibration import DEFAULTS, Calibration, Rate, load_calibrations
from vcpo_bench.analysis.results import Results, load

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "monitor.md"
TABLES = ROOT / "docs" / "studies" / "calibration"
AGAIN = TABLES / "again"
HEAD = (
    "| detector | false alarms per 1,000 healthy updates | healthy runs alarmed | failures announced | median lead |\n"
    "|---|---|---|---|---|\n"
)
STUDY = "the calibration grid of vcpo-bench"


def page(text: str, calibrations: tuple[Calibration, ...]) -> str:
    """The page with the table of these detectors in place of the one it has."""
    before, after = text.split(HEAD)
    return before + HEAD + "".join(map(_row, calibrations)) + _together(calibrations) + after[after.index("\n\n") + 1 :]


def _row(one: Calibration) -> str:
    detector = one.detector
    row = f"`{detector.signal}` > {detector.threshold:.3g}, mean of {detector.window}"
    row += f", {detector.persistence} in a row" if detector.persistence > 1 else ""
    lead = "" if one.median_lead is None else f"{one.median_lead:g}"
    return f"| {row} | {_rate(one.false_alarms)} | {_share(one.healthy_alarmed)} | {_share(one.recall)} | {lead} |\n"


def _together(calibrations: tuple[Calibration, ...]) -> str:
    union = calibrations[0].union
    if union is None:
        return ""
    return f"| **any of them** | | **{_share(union.healthy_alarmed)}** | {_share(union.recall)} | |\n"


def _rate(rate: Rate | None) -> str:
    return f"{rate.value:.2f} [{rate.low:.2f}, {rate.high:.2f}]" if rate else "not measured"


def _share(rate: Rate | None) -> str:
    return rate.percent if rate else "not measured"


def cells(results: Results) -> pd.DataFrame:
    """How each run ended, and the update at which it was found down."""
    place = ["task", "method", "staleness", "lr", "seed"]
    return events(results)[[*place, "event", "onset"]].sort_values(place, ignore_index=True)


def main(arguments: list[str]) -> None:
    """Run, calibrate, write."""
    results = next((one for one in arguments if not one.startswith("-")), "results/calibration")
    ours = [sys.executable, "-m", "vcpo_bench"]
    if "--no-run" not in arguments:
        subprocess.run([*ours, "run", "--config", "calibration", "--out", results], check=True)
    again = "--again" in arguments
    out, tables = (AGAIN / "detectors.json", AGAIN) if again else (DEFAULTS, TABLES)
    tables.mkdir(exist_ok=True)
    files = ["--out", str(out), "--tables", str(tables), "--name", STUDY]
    subprocess.run([*ours, "calibrate", results, *files], check=True)
    cells(load(results)).to_csv(tables / "cells.csv", index=False)
    if again:
        by_candidates(Path(results)).to_csv(tables / "candidates.csv", index=False)
        return
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), load_calibrations()), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
