"""Does what was learned on some runs hold on others? Alarms and a model, with seeds, lags, methods, tasks held out."""

from __future__ import annotations

from typing import Any

import pandas as pd

from vcpo_bench.analysis.prediction.auroc import auroc_row
from vcpo_bench.analysis.prediction.increment import baselines, held_out_odds
from vcpo_bench.analysis.prediction.matched import bootstrap_draws, compare, risk_sets
from vcpo_bench.analysis.prediction.panel import PRIMARY_LEAD, Panel
from vcpo_bench.analysis.prediction.tuning import SPLITS, fold_numbers, folds
from vcpo_bench.analysis.signals import PRIMARY

MODEL = "model of everything"
"""How the rows about the hazard model of all signals are called."""

_REPLICATIONS = 500


def generalisation_table(panel: Panel, alarms: pd.DataFrame) -> pd.DataFrame:
    """The operating point of every signal under each split, and the AUROC of a model under each split.

    Args:
        panel: the runs.
        alarms: ``generalisation`` of :class:`vcpo_bench.analysis.prediction.episodes.AlarmTables`.

    Returns:
        The rows of ``alarms``, and per split one row whose ``signal`` is :data:`MODEL`, with ``auroc``, ``auroc_low``,
        ``auroc_high`` at the primary lead (cases and controls of the same fold) and ``auroc_drop`` against seeds.
    """
    draws = bootstrap_draws(len(panel.runs), _REPLICATIONS)
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
