"""Failures by the written rule, at the alarm and at other updates. Not registered: no verdict follows from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from .design import RATES
from .verdicts import PLACEBO, VCPO, of_treatment

BOTH = "both"


def rule_table(table: pd.DataFrame) -> pd.DataFrame:
    """One row per task and one for both: how many risky parents fail by the written rule, over the whole run.

    Args:
        table: Of `tables.treated`.

    Returns:
        Columns `task`, `seeds`, `at_alarm` and `at_placebo`: runs that fail; `only_at_alarm`, `only_at_placebo`: of
        those, pairs in which the other run does not; `p`: exact two-sided sign test over these pairs.
    """
    risky = table[table["group"] == "risky"]
    pairs = {task: _failed(risky[risky["task"] == task]) for task in RATES}
    pairs[BOTH] = np.concatenate(list(pairs.values()), axis=1)
    return pd.DataFrame([{"task": task} | _counted(*pair) for task, pair in pairs.items()])


def _failed(own: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.bool_]]:
    return np.array([of_treatment(own, each)["failed"].to_numpy(bool) for each in (VCPO, PLACEBO)])


def _counted(alarm: np.ndarray[Any, Any], placebo: np.ndarray[Any, Any]) -> dict[str, Any]:
    one, other = int((alarm & ~placebo).sum()), int((placebo & ~alarm).sum())
    p = float(stats.binomtest(one, one + other).pvalue) if one + other else float("nan")
    row: dict[str, Any] = {"seeds": len(alarm), "at_alarm": int(alarm.sum()), "at_placebo": int(placebo.sum())}
    return row | {"only_at_alarm": one, "only_at_placebo": other, "p": p}
