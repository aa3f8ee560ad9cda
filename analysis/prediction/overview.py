"""What a prediction study consists of: all runs that were started, those that failed, and the signals."""

from __future__ import annotations

import numpy as np
import pandas as pd

from vcpo_bench.analysis.collapse.rule import UNDECIDED, events
from vcpo_bench.analysis.monitoring.signal import all_signals
from vcpo_bench.analysis.prediction.panel import Panel
from vcpo_bench.analysis.results import Results

PLACE = ["task", "method", "regime", "staleness", "lr"]
"""Runs are counted by these."""

_RUN = ["key", *PLACE, "seed", "event"]


def runs_table(results: Results) -> pd.DataFrame:
    """All runs that were started, by task, method, regime, lag and learning rate.

    Columns: these; `started`, `healthy` (never collapsed), `collapsed` (`nan` among them), `nan`, `stopped`
    (by an alarm: censored), `not_judged`, `seeds`.
    """
    verdicts = events(results)
    rows = []
    for group, cells in verdicts.groupby(PLACE, sort=True, dropna=False):
        kinds = cells["event"]
        rows.append(
            dict(zip(PLACE, group, strict=True))
            | {
                "started": len(cells),
                "healthy": int((~cells["collapsed"] & ~kinds.isin(UNDECIDED)).sum()),
                "collapsed": int(cells["collapsed"].sum()),
                "nan": int((kinds == "nan").sum()),
                "stopped": int((kinds == "stopped").sum()),
                "not_judged": int((kinds == "not applicable").sum()),
                "seeds": int(cells["seed"].nunique()),
            }
        )
    return pd.DataFrame(rows)


def failures_table(panel: Panel) -> pd.DataFrame:
    """Every run that failed: `key`, task, method, lag, learning rate, seed, `event`, and `onset` in updates."""
    return panel.runs.loc[panel.failed, _RUN].assign(onset=panel.onset[panel.failed]).reset_index(drop=True)


def recorded_signals(results: Results, panel: Panel) -> list[str]:
    """Signals that at least one run recorded, whether or not the collapse rule could judge it."""
    found = set(panel.recorded())
    rest = results.select(set(results.cells["key"]) - set(panel.runs["key"]))
    for _, run in rest.steps_by_cell():
        found |= {name for name, one in all_signals().items() if name not in found and np.isfinite(one.of(run)).any()}
    return sorted(found)


def signals_table(recorded: list[str]) -> pd.DataFrame:
    """What each signal is: `signal`, `meaning`, `role`, `recorded` (by at least one run)."""
    rows = [(one.name, one.summary, one.role) for one in all_signals().values()]
    table = pd.DataFrame(rows, columns=["signal", "meaning", "role"])
    return table.assign(recorded=table["signal"].isin(recorded))
