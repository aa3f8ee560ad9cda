"""What follows from the rates on each held-out grid: means over grids, contrasts and the registered words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from vcpo_bench.analysis.calibrating.tune import TARGET
from vcpo_bench.analysis.intervals import t_interval

from .judging import APART, ONE, PACKAGED, SEVERAL, STRICT

RATES = ("healthy_alarmed", "not_failing_alarmed", "false_per_1000", "recall", "random")
WORDS = (SEVERAL, STRICT)
"""Tunings whose promise is judged."""
PAIRS = (
    (SEVERAL, ONE, RATES[0]),
    (STRICT, SEVERAL, "recall"),
    (APART, SEVERAL, RATES[0]),
    (SEVERAL, PACKAGED, RATES[0]),
)
"""Tunings that are compared, and by which rate; only the first has a verdict."""
MARGIN = 0.03
ANNOUNCED = "recall less random"
Row = dict[str, Any]


def per_grid(table: pd.DataFrame) -> pd.DataFrame:
    """One row per held-out grid and tuning: of several that each tune alone, the mean."""
    return table.groupby(["held_out", "tuning"], sort=False)[list(RATES)].mean().reset_index()


def means(table: pd.DataFrame) -> pd.DataFrame:
    """Mean over held-out grids of each rate, with its 95% t interval over grids.

    Columns: `tuning`, `rate` (also `ANNOUNCED`), `grids`, `mean`, `low`, `high`; of the share of healthy runs alarmed
    `verdict` (of `WORDS`), and `below` and `above`: grids whose own interval lies so to the promise.
    """
    rows = []
    for tuning, own in per_grid(table).groupby("tuning", sort=False):
        own = own.assign(**{ANNOUNCED: own["recall"] - own["random"]})
        speaks = _mean(own[ANNOUNCED])["low"] > 0
        for rate in (*RATES, ANNOUNCED):
            row = {"tuning": tuning, "rate": rate} | _mean(own[rate])
            if rate == RATES[0]:
                row |= {"verdict": promised(row["low"], row["high"], speaks) if tuning in WORDS else ""}
                row |= _sides(table[table["tuning"] == tuning])
            rows.append(row)
    return pd.DataFrame(rows)


def promised(low: float, high: float, speaks: bool) -> str:
    """The registered word for an interval of the share of healthy runs with an alarm.

    Args:
        low: Its lower end.
        high: Its upper end.
        speaks: Whether more failures are announced than by random alarms.
    """
    if high < TARGET:
        return "kept" if speaks else "kept, but says nothing"
    return "broken" if low > TARGET else "undecided"


def _sides(own: pd.DataFrame) -> Row:
    if own["held_out"].duplicated().any():  # a mean over tunings has no interval of its own
        return {}
    return {
        "below": int((own["healthy_alarmed_high"] < TARGET).sum()),
        "above": int((own["healthy_alarmed_low"] > TARGET).sum()),
    }


def contrasts(table: pd.DataFrame) -> pd.DataFrame:
    """One tuning less another, paired by grid.

    Columns: `contrast`, `rate`, `grids`, `mean`, `low`, `high`, `low90`, `high90` and `verdict` (of the primary rate of
    `SEVERAL` less `ONE`).
    """
    wide = per_grid(table).pivot(index="held_out", columns="tuning")
    rows = []
    for one, other, rate in PAIRS:
        gaps = wide[rate][one] - wide[rate][other]
        low90, high90 = t_interval(gaps.dropna().to_numpy(float), 0.90)
        row = {"contrast": f"{one} - {other}", "rate": rate} | _mean(gaps) | {"low90": low90, "high90": high90}
        rows.append(row | {"verdict": compared(row) if (one, other, rate) == PAIRS[0] else ""})
    return pd.DataFrame(rows)


def compared(row: Mapping[str, Any]) -> str:
    """The registered word for a difference: equivalence goes first."""
    if row["low90"] >= -MARGIN and row["high90"] <= MARGIN:
        return "equivalent"
    return "lower" if row["high"] < 0 else "higher" if row["low"] > 0 else "undecided"


def without(table: pd.DataFrame) -> pd.DataFrame:
    """The mean share with each grid left out, of `WORDS`: `tuning`, `left_out`, `grids`, `mean`, `low`, `high`."""
    rows = []
    for tuning in WORDS:
        own = table[table["tuning"] == tuning]
        for name in own["held_out"]:
            rest = own.loc[own["held_out"] != name, RATES[0]]
            rows.append({"tuning": tuning, "left_out": name} | _mean(rest))
    return pd.DataFrame(rows)


def _mean(values: pd.Series) -> Row:
    known = values.dropna().to_numpy(float)
    low, high = t_interval(known)
    return {"grids": known.size, "mean": float(np.mean(known)), "low": low, "high": high}
