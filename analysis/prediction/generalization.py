"""Does what was learned on some runs hold on others? Alarms and a model, with seeds, lags, methods, tasks held out."""

from __future__ import annotations

from typing import Any

import pandas as pd

from vcpo_bench.analysis.monitoring.signal import PRIMARY
from vcpo_bench.analysis.prediction.added_value_of_ess import baselines, held_out_odds
from vcpo_bench.analysis.prediction.auroc import auroc_row
from vcpo_bench.analysis.prediction.landmarks import bootstrap_draws, compare, risk_sets
from vcpo_bench.analysis.prediction.panel import PRIMARY_LEAD, Panel
from vcpo_bench.analysis.prediction.thresholds import SPLITS, fold_numbers, folds

MODEL = "model of everything"
"""Value of `signal` in the rows about the hazard model of all signals."""

_REPLICATIONS = 500


def generalization_table(panel: Panel, alarms: pd.DataFrame) -> pd.DataFrame:
    """The operating point of every signal under each split, and the AUROC of a model under each split.

    Args:
        panel: The runs.
        alarms: `generalization` of `analysis.prediction.operating_points.AlarmTables`.

    Returns:
        The rows of `alarms`, and per split one row whose `signal` is `MODEL`, with `auroc`, `auroc_low`,
        `auroc_high` at the primary lead (cases and controls of the same fold) and `auroc_drop` against seeds.
    """
    draws = bootstrap_draws(panel, _REPLICATIONS)
    names = [*baselines(panel), *(name for name in (PRIMARY,) if name in panel.recorded())]
    rows: list[dict[str, Any]] = []
    for split in SPLITS:
        parts = folds(panel, split)
        if not parts:
            continue
        odds = held_out_odds(panel, [names for _ in parts], PRIMARY_LEAD, parts)
        sets = risk_sets(panel, PRIMARY_LEAD, groups=fold_numbers(parts, len(panel.runs)))
        one = auroc_row(compare(odds, sets), panel, draws)
        row = {"split": split, "signal": MODEL, "n_collapsed": one["n_collapsed"], "n_healthy": one["n_healthy"]}
        row |= {"auroc": one["value"], "auroc_low": one["low"], "auroc_high": one["high"]}
        rows.append(row | {"verdict": one["verdict"]})
    table = pd.DataFrame(rows)
    if rows:
        seeds = table.loc[table["split"] == "seed", "auroc"]
        table["auroc_drop"] = (seeds.iloc[0] if len(seeds) else float("nan")) - table["auroc"]
    kept = [one for one in (alarms, table) if len(one)]
    return pd.concat(kept, ignore_index=True) if kept else alarms
