"""Scores of checkpoints by lm-eval, over seeds."""

from __future__ import annotations

import numpy as np
import pandas as pd

from vcpo_bench.analysis.intervals import reward_interval
from vcpo_bench.analysis.results import GROUP, Results

MEASURE = ["lm_task", "metric", "filter"]
"""What was measured: the task of lm-eval, its metric, and what it did to the responses before."""


def lm_score_summary(results: Results) -> pd.DataFrame:
    """One row per group of cells, measure and checkpoint; of each cell, the latest checkpoint scored on a task.

    Columns: the group (`analysis.results.GROUP`), `MEASURE`, `step`, `documents` (the fewest of any cell; NaN
    for groups of tasks), `higher_is_better`, `seeds`, `value` (mean over seeds) with `value_low` and
    `value_high` (95% Student-t interval over seeds, NaN for one seed), `keys` (tuple of cells) and `rows` (tuple of
    their row numbers in `results.lm_eval`). The interval is over seeds; the error of a single score over its documents
    is `stderr` in `results.lm_eval`.
    """
    scores = results.lm_eval.rename(columns={"task": "lm_task"}).assign(row=range(len(results.lm_eval)))
    latest = scores.groupby(["key", "lm_task"])["step"].transform("max")
    joined = scores[scores["step"] == latest].merge(results.cells[["key", *GROUP]], on="key")
    rows = []
    for group, measured in joined.groupby([*GROUP, *MEASURE, "step"], sort=True):
        values = measured["value"].to_numpy(dtype=np.float64)
        low, high = reward_interval(values)
        better = measured["higher_is_better"].iloc[0]
        row = dict(zip([*GROUP, *MEASURE, "step"], group, strict=True))
        row |= {"documents": measured["n"].min(), "higher_is_better": better, "seeds": len(measured)}
        row |= {"value": values.mean(), "value_low": low, "value_high": high}
        row |= {"keys": tuple(measured["key"]), "rows": tuple(measured["row"].tolist())}
        rows.append(row)
    order = ["task", "lm_task", "metric", "filter", "lr", "staleness", "control", "method"]
    return pd.DataFrame(rows).sort_values(order, ignore_index=True) if rows else pd.DataFrame()
