"""Fact 5: ESS is nearly exp(-2 L K3)."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from scorecard import panel
from scorecard.cells import Block
from scorecard.fact import Fact, Part, Verdict
from scorecard.facts.f24_blind_collapse import HIGH_RATES
from scorecard.rules import bootstrap, number, within
from scorecard.tables import Tables

Array = NDArray[np.float64]
SLOPE, LEAST_R2, MOST, LEAST_UPDATES = (0.9, 1.1), 0.9, 2.0, 100


def judge(tables: Tables) -> list[Part]:
    """One part per task."""
    places = {task: tuple(make(task) for make in _LAGGED) for task in panel.RATES} | {"walk-eos": HIGH_RATES}
    return [_part(task, tables, blocks) for task, blocks in places.items()]


_LAGGED = (panel.long_runs, panel.vcpo, panel.halves)


def _part(task: str, tables: Tables, blocks: tuple[Block, ...]) -> Part:
    runs = tables.outcomes(*blocks)["run"]
    sums = [_sums(tables.signals(run)) for run in runs]
    sums = [one for one in sums if one[0]]
    if sum(one[0] for one in sums) < LEAST_UPDATES:
        return Part(task, "undecided", "too few updates within reach of the batch")
    slope, r2 = _slope(sums), _r2(sums)
    low, high = bootstrap(sums, _slope)
    verdict: Verdict = within(low, high, *SLOPE)
    if r2 < LEAST_R2 and verdict == "reproduced":
        verdict = "refuted"
    updates = sum(one[0] for one in sums)
    fit = f"slope of log ESS on -2 L K3: {number(slope, low, high)}, R2 {r2:.3f}"
    figure = f"{fit}; {updates:.0f} updates of {len(sums)} runs"
    return Part(task, verdict, figure, slope, low, high, "runs, bootstrap")


def _sums(updates: pd.DataFrame) -> Array:
    """What least squares needs of one run: number of updates, sums of x, y, x^2, x y and y^2."""
    x = (-2 * updates["length_mean"] * updates["kl_mu_theta_k3"]).to_numpy()
    ess = updates["ess_ratio"].to_numpy()
    used = (updates["lag_max"].to_numpy() > 0) & (x > -MOST) & (x < 0) & (ess > 0)
    x, y = x[used], np.log(ess[used])
    return np.array([len(x), x.sum(), y.sum(), (x * x).sum(), (x * y).sum(), (y * y).sum()])


def _moments(sums: list[Array]) -> tuple[float, float, float]:
    """Variances of x and y, and their covariance."""
    count, x, y, xx, xy, yy = np.sum(sums, axis=0)
    return xx / count - (x / count) ** 2, yy / count - (y / count) ** 2, xy / count - x * y / count**2


def _slope(sums: list[Array]) -> float:
    x, _, both = _moments(sums)
    return float(both / x)


def _r2(sums: list[Array]) -> float:
    x, y, both = _moments(sums)
    return float(both**2 / (x * y))


FACT = Fact(
    number=5,
    title="ESS follows from KL and length",
    order=13,
    statement="ESS is nearly exp(-2 L K3), with L the length and K3 the KL per token.",
    source="read off three published curves of VCPO (0.70, 0.55, 0.09), an inference of this project",
    rule=(
        f"Least squares of log ESS on -2 L K3 over updates with lag and 2 L K3 below {MOST:g} (a batch of 128 cannot "
        "show less ESS), per task, interval by resampling runs. Reproduced: the interval of the slope lies within 0.9 "
        "to 1.1, and R2 is at least 0.9. Refuted: the interval lies outside, or R2 is below 0.9 with the slope "
        "inside. Responses here have 4 to 24 tokens; lengths of 128 to 8,000 need a GPU."
    ),
    judge=judge,
    blocks=(*(make(task) for task in panel.RATES for make in _LAGGED), *HIGH_RATES),
    signals=True,
)
