"""Fact 23: the largest stable learning rate falls as 1 / lag, and a dose is constant at collapse."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np
import pandas as pd
from phase_study.tables import counted

from scorecard.fact import Fact, Part
from scorecard.rules import mean_within, number, within
from scorecard.tables import Tables

EXPONENTS, RUNS = "studies/phase/exponents.csv", "studies/phase/runs.csv"
METHODS, LAW = ("reinforce", "tis", "clip"), (0.75, 1.25)
FLAT = 0.25
"""Largest slope, either way, at which the dose counts as constant: as wide as the band of the exponent."""
LEAST_RUNS, LEAST_SEEDS = 3, 4
"""Failed runs of a seed that give a slope, and seeds with a slope that give an interval."""


def judge(tables: Tables) -> list[Part]:
    """Two parts per task and method of the phase study: the exponent, and whether the dose is constant."""
    rows = pd.read_csv(tables.docs / EXPONENTS)
    rows = rows[rows["method"].isin(METHODS) & (rows["lag"] == "reached")]
    doses = dose_table(counted(pd.read_csv(tables.docs / RUNS)))
    return [
        *(_exponent(row) for row in rows.to_dict("records")),
        *(_constant(str(row["task"]), str(row["method"]), doses) for row in rows.to_dict("records")),
    ]


def _exponent(row: Mapping[Hashable, object]) -> Part:
    name = f"1 / lag, {row['method']} on {row['task']}"
    value, low, high = (float(str(row[column])) for column in ("exponent", "low", "high"))
    if np.isnan([low, high]).all():
        return Part(name, "undecided", "the boundaries lie at an end of the learning rates that were tried")
    figure = number(value, low, high) if np.isfinite(value) else f"beyond what was searched [{low:.3g}, {high:.3g}]"
    return Part(name, within(low, high, *LAW), f"exponent {figure}", value, low, high, "seeds, profile")


def dose_table(runs: pd.DataFrame) -> pd.DataFrame:
    """The failed runs with a lag: `task`, `method`, `seed`, `lr`, and `dose`, onset x lag reached there x lr."""
    failed = runs[runs["failed"].astype(bool) & (runs["staleness"] > 0) & (runs["onset"] > 0)]
    reached = failed[["staleness", "onset"]].min(axis=1)
    return failed[["task", "method", "seed", "lr"]].assign(dose=failed["onset"] * reached * failed["lr"])


def _constant(task: str, method: str, doses: pd.DataFrame) -> Part:
    """Slope of log dose on log learning rate within each seed: 0 if the dose is constant, 1 if only the rate varies."""
    name = f"constant dose, {method} on {task}"
    own = doses[(doses["task"] == task) & (doses["method"] == method)]
    enough = own.groupby("seed")["lr"].transform(lambda lr: len(lr) >= LEAST_RUNS and lr.nunique() > 1).astype(bool)
    own = own[enough]
    each = [_slope(group) for _, group in own.groupby("seed")]
    if len(each) < LEAST_SEEDS:
        return Part(name, "undecided", f"seeds with enough failed runs: {len(each)}; {LEAST_SEEDS} are needed")
    low, high = own["dose"].quantile([0.1, 0.9])
    figure = f"slope of log dose on log learning rate: {{}}; from the first to the last decile of {len(own)} runs the "
    return mean_within(name, f"{figure}dose grows {high / low:.1f} times", each, -FLAT, FLAT)


def _slope(group: pd.DataFrame) -> float:
    return float(np.polyfit(np.log(group["lr"]), np.log(group["dose"]), 1)[0])


FACT = Fact(
    number=23,
    title="Stable learning rate falls as 1 over lag",
    order=104,
    statement="The largest stable learning rate falls as 1 / lag; updates x lag x rate is about constant at collapse.",
    source="staleness-learning rate scaling laws (2607.01083)",
    rule=(
        "1 / lag: the phase study's exponents, with the lag reached at the loss, for reinforce, tis and clip per task. "
        "The interval lies within 0.75 to 1.25 (reproduced) or outside (refuted). Constant dose: per task and method, "
        "over the failed runs with a lag of the phase study, dose = onset x min(lag, onset) x learning rate. The slope "
        "of log dose on log learning rate within each seed that has at least 3 failed runs at 2 rates or more; its "
        "mean over seeds, at least 4, lies within -0.25 to 0.25 (reproduced) or outside (refuted), t interval."
    ),
    judge=judge,
    pages=(EXPONENTS, RUNS),
)
