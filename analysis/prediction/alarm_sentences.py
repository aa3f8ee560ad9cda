"""What the alarms would have done, in plain sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from vcpo_bench.analysis.findings import with_interval
from vcpo_bench.analysis.monitoring.signals import PRIMARY
from vcpo_bench.analysis.prediction.alarm_outcomes import FURTHEST, NEAREST
from vcpo_bench.analysis.prediction.generalization import MODEL
from vcpo_bench.analysis.prediction.operating_points import OPERATING
from vcpo_bench.analysis.prediction.panel import LEAST_RUNS, TOO_FEW
from vcpo_bench.analysis.prediction.thresholds import SPLITS

_SPLIT_WORDS = {"seed": "held-out seeds", "staleness": "held-out lags", "method": "held-out methods"}
_SPLIT_WORDS["task"] = "held-out tasks"


def all_sentences(tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """Operating point, its rivals, generalization, and where misses and false alarms are listed."""
    episodes = tables["episodes"]
    if episodes.empty:
        return ["Alarms: thresholds come from training seeds; with one seed nothing can be held out."]
    return [
        *_operating_sentences(episodes),
        *_rival_sentence(episodes),
        *_generalization_sentences(tables["generalization"]),
        *_one_by_one(tables["misses"], tables["false_alarms"]),
    ]


def _operating_sentences(episodes: pd.DataFrame) -> list[str]:
    here = episodes[episodes["signal"] == PRIMARY]
    if here.empty:
        return []
    row = here.iloc[0].to_dict()
    point = f"tuned so that at most {OPERATING:.0%} of healthy training runs are ever alarmed, on held-out seeds"
    if row["verdict"] == TOO_FEW:
        return [
            f"ESS alarms, {point}: too few runs ({row['n_collapsed']} collapsed, {row['n_healthy']} healthy; at least "
            f"{LEAST_RUNS} of each are needed)."
        ]
    caught = round(row["recall"] * row["n_collapsed"])
    lead = f"median lead {row['lead_median']:.0f} [{row['lead_q25']:.0f}, {row['lead_q75']:.0f} quartiles]"
    return [
        f"ESS alarms, {point}: {caught} of {row['n_collapsed']} losses announced {NEAREST} to {FURTHEST} updates "
        f"ahead (recall {_interval(row, 'recall')}"
        + (f", {lead}" if caught else "")
        + f"); {row['late']:.0f} too late, {row['early']:.0f} too early, {row['never']:.0f} never.",
        f"They cost {_interval(row, 'false_per_1000')} false alarms per 1,000 healthy updates and alarm "
        f"{_interval(row, 'healthy_alarmed')} of healthy runs; precision {_interval(row, 'precision')}. Random alarms "
        f"at the same rate announce {with_interval(row['placebo_recall'], row['placebo_low'], row['placebo_high'])} of "
        f"the losses (p = {row['placebo_p']:.2g}).",
        f"Had every alarm stopped its run, {row['updates_saved']:.0f} updates of lost runs were saved and "
        f"{row['stopped_wrongly']:.0f} healthy runs stopped. That an alarm predicts does not show that acting on it "
        "helps; `vcpo-bench fork` tests that.",
    ]


def _rival_sentence(episodes: pd.DataFrame) -> list[str]:
    here = episodes[(episodes["verdict"] != TOO_FEW) & (episodes["signal"] != PRIMARY)]
    if here.empty:
        return []
    best = here.sort_values(["recall", "false_per_1000"], ascending=[False, True], kind="stable").head(5)
    named = "; ".join(
        f"{row['signal']} {row['recall']:.2f} at {row['false_per_1000']:.1f} ({row['healthy_alarmed']:.0%})"
        for row in best.to_dict("records")
    )
    return [f"Best others at the same point, recall at false alarms per 1,000 (healthy runs alarmed): {named}."]


def _generalization_sentences(table: pd.DataFrame) -> list[str]:
    result = []
    for name, measure in ((PRIMARY, "recall"), (MODEL, "auroc")):
        here = table[(table["signal"] == name) & (table["verdict"] != TOO_FEW)]
        rows = {row["split"]: row for row in here.to_dict("records")}
        parts = [f"{_SPLIT_WORDS[split]} {_words(rows[split], measure)}" for split in SPLITS if split in rows]
        if parts:
            what = "ESS alarms" if name == PRIMARY else f"The {MODEL}"
            result.append(f"{what} ({measure.replace('auroc', 'AUROC')}): {'; '.join(parts)}.")
    return result


def _words(row: Mapping[Any, Any], measure: str) -> str:
    cost = f" at {row['false_per_1000']:.1f} false per 1,000" if measure == "recall" else ""
    return _interval(row, measure) + cost


def _one_by_one(misses: pd.DataFrame, false_alarms: pd.DataFrame) -> list[str]:
    missed = int((misses["signal"] == PRIMARY).sum()) if len(misses) else 0
    wrong = int((false_alarms["signal"] == PRIMARY).sum()) if len(false_alarms) else 0
    return [f"One by one in the tables `misses` ({missed} of ESS) and `false_alarms` ({wrong} runs of ESS)."]


def _interval(row: Mapping[Any, Any], name: str) -> str:
    return with_interval(float(row[name]), float(row[f"{name}_low"]), float(row[f"{name}_high"]))
