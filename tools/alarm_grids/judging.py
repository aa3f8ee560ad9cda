"""What detectors do on a grid that tuned none of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from vcpo_bench.analysis.calibrating.judge import ANY, measure, spoken
from vcpo_bench.analysis.calibrating.runs import Study
from vcpo_bench.analysis.calibrating.tune import TARGET, Material, at_most, tune
from vcpo_bench.analysis.intervals import holm, stratified_t, t_interval
from vcpo_bench.analysis.monitoring.detectors import Detector
from vcpo_bench.analysis.prediction.alarm_outcomes import clock, outcomes, placebo
from vcpo_bench.analysis.prediction.panel import LEAST_RUNS, Flags

from .grids import ALIKE, FAILING, Pool

SEVERAL, STRICT, ONE = "several", "strict", "one"
MARGIN, LEVEL = 0.05, 0.05
PAIRS = ((SEVERAL, ONE), (STRICT, SEVERAL))
_RATES = ("healthy_alarmed", "false_per_1000", "recall")
Row = dict[str, Any]


def judged(studies: Mapping[str, Study], whole: Pool) -> pd.DataFrame:
    """Any detector on each held-out grid, one row per tuning.

    Columns: `held_out`, `tuning`, `tuned_on`, `detectors` (those that it chose), `n_healthy`, `n_collapsed`,
    `configurations`, `healthy_alarmed`, `false_per_1000` and `recall`, each with `_low` and `_high` (over
    configurations of the grid), `median_lead`, and `random`, the recall of random alarms at the same rate. Without
    failures to judge by, the last three say nothing.
    """
    names = list(studies)
    rows = []
    for name, study in studies.items():
        for tuning, on, chosen in _tunings(whole, name, names):
            if chosen is not None:
                rows.append({"held_out": name, "tuning": tuning, "tuned_on": on} | _rates(study, chosen))
    return pd.DataFrame(rows)


def _tunings(whole: Pool, held_out: str, names: Sequence[str]) -> Iterator[tuple[str, str, list[Detector] | None]]:
    """Each tuning, with what it chose; None: it has nothing to tune on."""
    others = whole.tuning(held_out, names)
    yield SEVERAL, "all others", tune(whole.given, others)
    yield STRICT, "all others", at_most(whole.given, others, _by_grid(whole, others))
    for name in FAILING:
        if name != held_out:
            yield ONE, name, _tuned(whole, whole.tuning(held_out, [name]))
    if held_out in ALIKE:
        alike = whole.tuning(held_out, ALIKE)
        yield f"{SEVERAL}, alike", "others of 128", tune(whole.given, alike)


def _tuned(whole: Pool, train: Flags) -> list[Detector] | None:
    healthy, failed = train & whole.given.study.healthy, train & whole.given.study.panel.failed
    return tune(whole.given, train) if min(healthy.sum(), failed.sum()) >= LEAST_RUNS else None


def _by_grid(whole: Pool, train: Flags) -> list[Flags]:
    """Healthy training runs of each grid that has enough of them."""
    healthy = train & whole.given.study.healthy
    parts = [healthy & (whole.grid == name) for name in dict.fromkeys(whole.grid)]
    return [one for one in parts if one.sum() >= LEAST_RUNS]


def _rates(study: Study, chosen: Sequence[Detector]) -> Row:
    time = clock(study.panel)
    found = measure(Material(study, time, {}, {}), chosen).set_index("signal")
    row: Row = {"detectors": "; ".join(one.text for one in chosen)} | found.loc[ANY].to_dict()
    alarms = spoken(study, [(chosen, np.ones(len(study.panel.runs), dtype=bool))]).alarms[ANY]
    did = outcomes(np.where(alarms, 1.0, 0.0), 0.5, time)
    row["random"] = placebo(did, time, study.panel.failed, study.configuration)[0]
    if study.name not in FAILING:
        row |= dict.fromkeys(("recall", "recall_low", "recall_high", "median_lead", "random"), np.nan)
    return {name: value for name, value in row.items() if not name.startswith(("n_dips", "dips"))}


def means(table: pd.DataFrame) -> pd.DataFrame:
    """Mean over held-out grids of each rate, with its 95% t interval over grids.

    Columns: `tuning`, `rate`, `grids`, `mean`, `low`, `high`, `verdict` (of shares of healthy runs: `kept`, `broken` or
    `undecided`).
    """
    rows = []
    for tuning, own in _per_grid(table).groupby("tuning", sort=False):
        for rate in (*_RATES, "random"):
            values = own[rate].dropna().to_numpy(float)
            low, high = t_interval(values)
            row = {
                "tuning": tuning,
                "rate": rate,
                "grids": values.size,
                "mean": values.mean(),
                "low": low,
                "high": high,
            }
            rows.append(row | {"verdict": promised(low, high) if rate == _RATES[0] else ""})
    return pd.DataFrame(rows)


def promised(low: float, high: float) -> str:
    """The registered word for an interval of the share of healthy runs with an alarm."""
    return "kept" if high < TARGET else "broken" if low > TARGET else "undecided"


def contrasts(table: pd.DataFrame) -> pd.DataFrame:
    """Share of healthy runs alarmed, of one tuning less another, paired by grid.

    Columns: `contrast`, `grids`, `difference`, `low`, `high`, `low90`, `high90`, `p`, `p_holm`, `verdict`.
    """
    wide = _per_grid(table).pivot(index="held_out", columns="tuning", values=_RATES[0])
    rows = []
    for one, other in PAIRS:
        differences = (wide[one] - wide[other]).dropna().to_numpy(float)
        mean, low, high, p = stratified_t([differences])
        low90, high90 = t_interval(differences, 0.90)
        row = {"contrast": f"{one} - {other}", "grids": differences.size, "difference": mean, "low": low, "high": high}
        rows.append(row | {"low90": low90, "high90": high90, "p": p})
    found = pd.DataFrame(rows)
    found = found.assign(p_holm=holm(found["p"]))
    return found.assign(verdict=[_compared(row) for row in found.to_dict("records")])


def _compared(row: Mapping[Any, Any]) -> str:
    if row["low90"] >= -MARGIN and row["high90"] <= MARGIN:
        return "equivalent"
    if row["p_holm"] < LEVEL and not row["low"] <= 0 <= row["high"]:
        return "higher" if row["difference"] > 0 else "lower"
    return "undecided"


def _per_grid(table: pd.DataFrame) -> pd.DataFrame:
    """One row per held-out grid and tuning: of several that each tune alone, the mean."""
    return table.groupby(["held_out", "tuning"], sort=False)[[*_RATES, "random"]].mean().reset_index()
