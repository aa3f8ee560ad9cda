"""What the packaged detectors say of the same runs: how many failures they precede, how many survivors they alarm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from vcpo_bench.analysis.intervals import wilson
from vcpo_bench.analysis.monitoring.calibration import load_calibrations
from vcpo_bench.analysis.monitoring.signal import all_signals
from vcpo_bench.analysis.prediction.alarm_outcomes import NEAREST
from vcpo_bench.analysis.results import Results

PLACE = ["task", "method", "staleness"]
PREFIX = "alarm_"
ANY = "any of them"


def first_alarms(results: Results) -> pd.DataFrame:
    """`key`, and for each packaged detector the updates applied at its first alarm; NaN: it was silent."""
    detectors, signals = [one.detector for one in load_calibrations()], all_signals()
    rows = []
    for key, steps in results.steps_by_cell():
        heard = {one.signal: one.alarms(signals[one.signal].of(steps)) for one in detectors}
        first = {f"{PREFIX}{name}": one.argmax() + 1.0 if one.any() else np.nan for name, one in heard.items()}
        rows.append({"key": key} | first)
    return pd.DataFrame(rows, columns=["key", *(f"{PREFIX}{one.signal}" for one in detectors)])


def alarm_table(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per detector, and one for all of them together.

    Args:
        runs: Main runs of the places that count.

    Returns:
        Columns `detector`; `failures`; `before`: first alarm before the onset; `in_time`: at least `NEAREST` updates
        before; `median_lead` of those before; `before_share` and `in_time_share` of the failures, and beside them
        `before_matched` and `in_time_matched`: the share of survivors of the same place that were alarmed by the same
        update, mean over the failures; `survivors`, `alarmed` in all their updates and its share with a 95% interval
        (Wilson).
    """
    known = runs[runs["known"].astype(bool)]
    names = [str(name) for name in runs if str(name).startswith(PREFIX)]
    heard = known[names].astype(float)
    columns = {name.removeprefix(PREFIX): heard[name] for name in names} | {ANY: heard.min(axis=1)}
    failed, onset = known["failed"].astype(bool), known["onset"].astype(float)
    rows = []
    for name, first in columns.items():
        lead = (onset - first)[failed]
        alarmed, survivors = int(first[~failed].notna().sum()), int((~failed).sum())
        low, high = wilson(alarmed, survivors)
        before = lead[lead > 0]
        row: dict[str, Any] = {"detector": name, "failures": int(failed.sum()), "before": len(before)}
        row |= {"in_time": int((lead >= NEAREST).sum()), "median_lead": before.median()}
        row |= {"before_share": (lead > 0).mean(), "before_matched": _matched(known, first, np.nextafter(0, 1))}
        row |= {"in_time_share": (lead >= NEAREST).mean(), "in_time_matched": _matched(known, first, NEAREST)}
        row |= {"survivors": survivors, "alarmed": alarmed, "share": alarmed / max(survivors, 1)}
        rows.append(row | {"low": low, "high": high})
    return pd.DataFrame(rows)


def _matched(known: pd.DataFrame, first: pd.Series, ahead: float) -> float:
    """Share of survivors alarmed at least so far ahead of a failure of their place, mean over the failures.

    Failures are watched until their onset, survivors for all updates: only so are both watched for as long.
    """
    shares: list[float] = []
    for _, own in known.assign(first=first).groupby(PLACE):
        failed = own["failed"].astype(bool)
        survivors = own.loc[~failed, "first"]
        shares += [float((onset - survivors >= ahead).mean()) for onset in own.loc[failed, "onset"].astype(float)]
    return float(np.mean(shares)) if shares else float("nan")
