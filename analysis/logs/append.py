"""A log that was rotated or begun again: what an earlier reading held stays part of the run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vcpo_bench.analysis.logs.run import LoggedRun, Series


def with_past(past: LoggedRun, now: LoggedRun) -> LoggedRun:
    """A reading of a log, behind the steps of an earlier one that come before it."""
    began = first_step(now)
    series = dict(now.series)
    for name, old in past.series.items():
        kept = old.steps < began
        steps, values = old.steps[kept], old.values[kept]
        new = series.get(name)
        if new is not None:
            joined = np.concatenate([steps, new.steps]), np.concatenate([values, new.values])
            series[name] = replace(new, steps=joined[0], values=joined[1])
        elif steps.size:
            series[name] = Series(old.column, old.source, old.logged_as, steps, values)
    return replace(now, series=series, resumes=(*past.resumes, *now.resumes))


def first_step(run: LoggedRun) -> float:
    """The smallest step of any column; NaN where there is none."""
    return min((float(one.steps[0]) for one in run.series.values() if one.steps.size), default=float("nan"))
