"""Runs of ours that ship, one that learns and one that collapses per trainer, beside a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.analysis.diagnosis.departures import NOT_SIGNALS, start_size
from vcpo_bench.analysis.diagnosis.diagnosis import Beside, Departure, References, ShortCurve
from vcpo_bench.analysis.logs.names import frameworks
from vcpo_bench.analysis.logs.read import read_run
from vcpo_bench.analysis.logs.run import LoggedRun, Series

REFERENCE = "reference"
"""What stands for these runs where a baseline is asked for."""
FOLDER = Path(__file__).with_name("references")
"""`TRAINER-healthy.csv` and `TRAINER-collapsed.csv`, and how they were made."""
OTHERWISE = "verl"
"""The trainer whose runs stand in for those of another: the one that logs most."""


def beside_references(run: LoggedRun, departures: tuple[Departure, ...]) -> References:
    """Every signal of a run beside the same of two that ship: the reward first, then in the order of departures."""
    own = (FOLDER / f"{run.framework}-healthy.csv").is_file()
    trainer = run.framework if own else OTHERWISE
    healthy, collapsed = (read_run(FOLDER / f"{trainer}-{name}.csv", trainer) for name in ("healthy", "collapsed"))
    title = frameworks()[trainer].title
    known = dict.fromkeys(["reward", *(one.column for one in departures), *run.series])
    shared = [
        name
        for name in known
        if name in run.series
        and (name in healthy.series or name in collapsed.series)
        and (name == "reward" or name not in NOT_SIGNALS)
    ]
    rows = tuple(
        Beside(run.series[name].column.label, *(_curve(one.series.get(name)) for one in (run, healthy, collapsed)))
        for name in shared
    )
    return References(title if own else f"{title}, for none of {run.title} ships", rows)


def _curve(series: Series | None) -> ShortCurve | None:
    values: NDArray[np.float64] = np.empty(0) if series is None else series.finite[1]
    if not values.size:
        return None
    size = start_size(values.size)
    return ShortCurve(values, float(np.median(values[:size])), float(np.median(values[-size:])))
