"""A planted world of the phase study: every run that its searches ask for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from phase_study import design
from phase_study.design import LADDER, PLAN, Plan, Unit

SEEDS = range(4)


def planted(unit: Unit) -> float:
    """Boundary in rungs: falls as lag^-0.5; VCPO bears twice the rate of its matched control; seeds differ a little."""
    start = {"vcpo": 7.3, "vcpo(ess=off)+lr-matched": 6.3}.get(unit.method, 5.8)
    return start - 0.5 * float(np.log2(unit.staleness + 1)) + float(unit.draws().normal()) * 0.2


def row(unit: Unit, rung: int, boundary: Callable[[Unit], float] = planted) -> dict[str, Any]:
    """The run of a unit at a rung."""
    failed = rung > boundary(unit)
    place = {"seed": unit.seed, "task": unit.task, "method": unit.method, "staleness": unit.staleness}
    facts = {"rung": rung, "lr": LADDER[rung], "event": "collapse" if failed else "healthy", "failed": failed}
    reward = 0.0 if failed else 0.5 + 0.05 * rung
    facts |= {"onset": 100.0 if failed else np.nan, "final_reward": reward}
    return place | facts | {"mean_step_scale": 1.0, "mean_ess": 0.5}


def world(seeds: Sequence[int] = SEEDS, boundary: Callable[[Unit], float] = planted, plan: Plan = PLAN) -> pd.DataFrame:
    """One row per run, as in the shipped `runs.csv`.

    Args:
        seeds: Whose searches are made.
        boundary: Of each unit, in rungs: a run fails above it.
        plan: Which units a seed has.
    """
    rows, found = [], dict[Unit, dict[int, bool]]()
    while wanted := design.wanted(seeds, found, plan):
        for unit, rung in wanted:
            rows.append(row(unit, rung, boundary))
            found.setdefault(unit, {})[rung] = rows[-1]["failed"]
    return pd.DataFrame(rows)
