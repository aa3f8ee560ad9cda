"""A run beside a reference run: which signals differ at the same steps."""

from __future__ import annotations

import numpy as np

from vcpo_bench.analysis.diagnosis.departures import DISTANCE, NOT_SIGNALS, PERSISTENCE, thinned
from vcpo_bench.analysis.logs.run import LoggedRun, Series
from vcpo_bench.analysis.series import first_long_streak

_MAD_TO_STD = 1.4826


def compare(run: LoggedRun, reference: LoggedRun) -> tuple[str, ...]:
    """One sentence per signal that both runs log, where it leaves the range of the reference; and what is missing.

    The reference is one run: its own noise is the only yardstick, and another seed of it may differ as much.
    """
    found = []
    for name, series in run.series.items():
        if name in NOT_SIGNALS or name not in reference.series:
            continue
        first = _first_difference(series, reference.series[name])
        if first is not None:
            found.append(first)
    sentences = [text for _, text in sorted(found)]
    absent = sorted(name for name in reference.series if name not in run.series and name not in NOT_SIGNALS)
    if absent:
        sentences.append(f"The reference logs {', '.join(absent)}; this run does not.")
    return tuple(sentences) or ("No signal leaves the range of the reference run.",)


def _first_difference(series: Series, reference: Series) -> tuple[float, str] | None:
    steps, values = thinned(series)
    at, usual = thinned(reference)
    inside = (steps >= at[0]) & (steps <= at[-1]) if at.size else np.zeros(steps.size, dtype=bool)
    if inside.sum() < PERSISTENCE:
        return None
    steps, values = steps[inside], values[inside]
    expected = np.interp(steps, at, usual)
    noise = _MAD_TO_STD * float(np.median(np.abs(np.diff(usual)))) if usual.size > 1 else 0.0
    floor = series.column.floor * (np.maximum(np.abs(expected), 1e-12) if series.column.log else 1.0)
    out = np.abs(values - expected) > DISTANCE * np.maximum(noise, floor)
    start = first_long_streak(out, PERSISTENCE)
    if start is None:
        return None
    difference = f"{values[start]:.3g} against {expected[start]:.3g}"
    text = f"{series.column.label} leaves the reference at step {steps[start]:g}: {difference}."
    return float(steps[start]), text
