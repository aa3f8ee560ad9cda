"""The tables of the prediction study in plain sentences. A number with too few runs is not given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from vcpo_bench.analysis.findings import with_interval
from vcpo_bench.analysis.prediction.auroc import BETTER, WORSE, hanley_mcneil
from vcpo_bench.analysis.prediction.panel import LEAST_RUNS, PRIMARY_LEAD, TOO_FEW, Panel
from vcpo_bench.analysis.signals import PRIMARY


def count_sentence(runs: pd.DataFrame, panel: Panel) -> str:
    """How many runs were started and what became of them."""
    total = runs[["started", "healthy", "collapsed", "nan", "not_judged"]].sum()
    onset = np.median(panel.onset[panel.failed]) if panel.failed.any() else np.nan
    when = f" (half of the losses found by update {onset:.0f})" if np.isfinite(onset) else ""
    return (
        f"{total['started']} runs were started, all are in: {total['collapsed']} collapsed, {total['nan']} ended as "
        f"nan{when}, {total['healthy']} were never lost, to {total['not_judged']} the rule does not apply."
    )


def auroc_sentences(table: pd.DataFrame) -> list[str]:
    """The primary endpoint, its other leads, and how the other signals do at the primary lead."""
    here = table[table["signal"] == PRIMARY]
    main = here[here["lead"] == PRIMARY_LEAD].iloc[0]
    what = f"ESS {PRIMARY_LEAD} updates before a run is found down, against runs of the same task, lag and step"
    if main["verdict"] == TOO_FEW:
        return [
            f"Primary endpoint: {what}: too few runs ({main['n_collapsed']} collapsed, {main['n_healthy']} healthy; "
            f"at least {LEAST_RUNS} of each are needed)."
        ]
    half = hanley_mcneil(main["value"], main["n_collapsed"], main["n_healthy"])
    sentences = [
        f"Primary endpoint: {what}: AUROC {_interval(main)}, {main['verdict']} "
        f"({main['n_collapsed']} collapsed, {main['n_healthy']} healthy runs; as many independent runs would give "
        f"about +-{half:.2f}).",
        "ESS by lead: " + "; ".join(_lead_words(row) for row in here.to_dict("records")) + ".",
    ]
    others = table[(table["lead"] == PRIMARY_LEAD) & (table["signal"] != PRIMARY)].sort_values("value", ascending=False)
    told = others[(others["verdict"] == BETTER) & (others["p_holm"] < 0.05)]
    if len(told):
        named = "; ".join(f"{row['signal']} {_interval(row)}" for row in told.to_dict("records"))
        sentences.append(f"Other signals better than chance at lead {PRIMARY_LEAD} after Holm's correction: {named}.")
    reversed_ = others[(others["verdict"] == WORSE) & (others["p_holm"] < 0.05)]["signal"]
    if len(reversed_):
        sentences.append(f"Pointing the other way at that lead: {', '.join(reversed_)}.")
    return sentences


def missing_sentences(signals: pd.DataFrame) -> list[str]:
    """Which signals no run recorded."""
    missing = list(signals.loc[~signals["recorded"], "signal"])
    if not missing:
        return []
    return [f"Not recorded, hence not judged: {', '.join(missing)} (see `vcpo-bench run --record`)."]


def _interval(row: Mapping[Any, Any] | pd.Series) -> str:
    return with_interval(float(row["value"]), float(row["low"]), float(row["high"]))


def _lead_words(row: Mapping[Any, Any]) -> str:
    lead = int(row["lead"])
    when = f"{lead} before" if lead > 0 else f"{-lead} after"
    if row["verdict"] == TOO_FEW:
        return f"{when} too few ({row['n_collapsed']} and {row['n_healthy']})"
    return f"{when} {_interval(row)}"
