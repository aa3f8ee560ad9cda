"""AUROC of every signal on each task alone, and where the tasks disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from study_pages.markdown_table import number

from vcpo_bench.analysis.percentile_interval import percentile_interval
from vcpo_bench.analysis.prediction.panel import Panel

from .areas import PRIMARY_LEAD, area, with_landmarks
from .design import Place
from .tables import SIGNALS


def task_table(
    found: Mapping[Place, Panel], lead: int = PRIMARY_LEAD, signals: Sequence[str] = SIGNALS
) -> pd.DataFrame:
    """One row per signal and task, mean over the groups of the task.

    The interval is of these places: only the seeds are drawn again, for the groups of one task are too few.

    Returns:
        Columns `signal`, `task`, `places` where it varies, `auroc`, `low`, `high`, and of the single places the
        `lowest` and the `highest`; NaN where the signal varies in no place.
    """
    kept = with_landmarks(found, lead)
    tasks = dict.fromkeys(place.task for place in kept)
    rows: list[dict[str, Any]] = []
    for name in signals:
        whole = area(kept, name, lead)
        for task in tasks:
            one = whole.only(tuple(place for place in whole.known if place.task == task))
            row: dict[str, Any] = {"signal": name, "task": task, "places": len(one.places)}
            if one.places:
                value = float(one.groups().mean())
                low, high = percentile_interval(value, one.seed_draws())
                row |= {"auroc": value, "low": low, "high": high}
                row |= {"lowest": float(one.each.min()), "highest": float(one.each.max())}
            rows.append(row)
    columns = ["signal", "task", "places", "auroc", "low", "high", "lowest", "highest"]
    return pd.DataFrame(rows, columns=columns)


def wide(tasks: pd.DataFrame) -> pd.DataFrame:
    """The table of the page: a row per signal, a column per task, with interval and number of places."""
    shown = tasks.assign(text=[_cell(row) for row in tasks.to_dict("records")])
    columns = {f"`{task}`": own.set_index("signal")["text"] for task, own in shown.groupby("task", sort=False)}
    return pd.DataFrame(columns).reindex(tasks["signal"].unique()).reset_index(names="signal")


def disagreement(tasks: pd.DataFrame) -> str:
    """A sentence on the signals whose intervals on two tasks do not overlap."""
    apart = [(str(name), text) for name, own in tasks.groupby("signal", sort=False) if (text := _apart(own))]
    if not apart:
        return (
            "For no signal are the intervals of two tasks apart. That does not show that tasks agree: the intervals "
            "are wide."
        )
    listed = "; ".join(f"`{name}` ({text})" for name, text in apart)
    end = "their intervals are apart, so the average of such a signal hides a difference between tasks."
    return f"**Tasks disagree** on {listed}: {end}"


def _apart(own: pd.DataFrame) -> str:
    known = own[own["auroc"].notna()].to_dict("records")
    pairs = [(a, b) for a, b in combinations(known, 2) if a["high"] < b["low"] or b["high"] < a["low"]]
    return ", ".join(f"`{a['task']}` {number(a['auroc'])} and `{b['task']}` {number(b['auroc'])}" for a, b in pairs)


def _cell(row: Mapping[Any, Any]) -> str:
    if np.isnan(row["auroc"]):
        return "constant"
    return f"{number(row['auroc'])} [{number(row['low'])}, {number(row['high'])}] ({row['places']})"
