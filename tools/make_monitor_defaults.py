"""The monitor's packaged detectors from a study: vcpo-bench analyze prediction DIR --out OUT, then this script OUT.

Taken are the detectors that announced at least half of the held-out collapses, and more of them than random alarms
did at the same rate. Left out are those that listen to a circumstance rather than to the run (step, lag, rate), and
`reward_low`: its threshold is a level of reward, so that on a task that starts lower it would speak at once. The
table in `docs/monitor.md` is written anew; a test fails when it is not current.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pandas as pd

from vcpo_bench.analysis.monitoring.calibration import DEFAULTS, Calibration, Rate, load_calibrations
from vcpo_bench.analysis.monitoring.signal import SIGNALS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "monitor.md"
HEAD = "| detector | false alarms per 1,000 healthy updates | collapses announced | median lead |\n|---|---|---|---|\n"
BETTER, LEAST_RECALL = "beats random alarms", 0.5
LEFT_OUT = ("reward_low",)


def chosen(study: Path) -> list[dict[str, object]]:
    """The entries of `study/detectors.json` that are packaged, in its order: the best first."""
    episodes = pd.read_csv(study / "episodes.csv")
    good = (episodes["verdict"] == BETTER) & (episodes["recall"] >= LEAST_RECALL)
    better = set(episodes.loc[good, "signal"]) - set(LEFT_OUT)
    entries = json.loads((study / "detectors.json").read_text(encoding="utf-8"))
    return [one for one in entries if one["signal"] in better and SIGNALS.get(one["signal"]).role != "circumstance"]


def page(text: str, calibrations: tuple[Calibration, ...]) -> str:
    """The page with the table of these detectors in place of the one it has."""
    before, after = text.split(HEAD)
    return before + HEAD + "".join(_row(one) for one in calibrations) + after[after.index("\n\n") + 1 :]


def _row(one: Calibration) -> str:
    detector = one.detector
    row = f"`{detector.signal}` > {detector.threshold:.3g}, mean of {detector.window}"
    row += f", {detector.persistence} in a row" if detector.persistence > 1 else ""
    return f"| {row} | {_rate(one.false_alarms)} | {_rate(one.recall)} | {one.median_lead} |\n"


def _rate(rate: Rate | None) -> str:
    return f"{rate.value:.2f} [{rate.low:.2f}, {rate.high:.2f}]" if rate else "not measured"


if __name__ == "__main__":
    DEFAULTS.write_text(json.dumps(chosen(Path(sys.argv[1])), indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), load_calibrations()), encoding="utf-8")
