"""What alarms would have done, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from vcpo_bench.analysis.findings import NOTE, Finding, Findings
from vcpo_bench.analysis.monitoring.signal import PRIMARY
from vcpo_bench.analysis.prediction.alarm_outcomes import FURTHEST, NEAREST
from vcpo_bench.analysis.prediction.generalization import MODEL
from vcpo_bench.analysis.prediction.operating_points import OPERATING
from vcpo_bench.analysis.prediction.panel import NEEDED, TOO_FEW
from vcpo_bench.analysis.prediction.thresholds import SPLITS
from vcpo_bench.analysis.wording import counted, interval_of, p_value, percent, with_interval

ALARMS = "alarms"
"""Topic: what alarms would have announced, at what cost."""

_HELD_OUT = {"seed": "seeds", "staleness": "lags", "method": "methods", "task": "tasks"}
_COUNTS = ("signal", "n_collapsed", "n_healthy")


def alarms(found: Findings) -> Iterator[Finding]:
    """The operating point of ESS, its rivals, generalization, and where misses and false alarms are listed."""
    episodes = found.tables["episodes"]
    if episodes.empty:
        text = "Alarms: thresholds are tuned on training seeds, and with one seed none can be held out."
        yield found.finding(NOTE, text, "runs", found.tables["runs"], ("task", "method", "staleness", "lr", "seeds"))
        return
    ess = episodes[episodes["signal"] == PRIMARY]
    if len(ess):
        yield from _operating_point(found, ess)
    yield from _rivals(found)
    yield from _generalization(found)
    yield from _one_by_one(found)


def _operating_point(found: Findings, part: pd.DataFrame) -> Iterator[Finding]:
    row = part.iloc[0].to_dict()
    point = f"tuned to alarm at most {OPERATING:.0%} of the healthy training runs, on held-out seeds"
    if row["verdict"] == TOO_FEW:
        text = (
            f"ESS alarms, {point}: too few runs or configurations ({row['n_collapsed']} failed, {row['n_healthy']} "
            f"healthy; {NEEDED})."
        )
        yield found.finding(ALARMS, text, "episodes", part, (*_COUNTS, "verdict"))
        return
    caught = round(row["recall"] * row["n_collapsed"])
    quartiles = f"[{row['lead_q25']:.0f}, {row['lead_q75']:.0f}]"
    lead = f", median lead {row['lead_median']:.0f} updates, quartiles {quartiles}" if caught else ""
    text = (
        f"ESS alarms, {point}: {caught} of {row['n_collapsed']} failures announced {NEAREST} to {FURTHEST} updates "
        f"ahead (recall {interval_of(row, 'recall')}{lead}); {row['late']:.0f} too late, {row['early']:.0f} too early, "
        f"{row['never']:.0f} never."
    )
    leads = ("lead_median", "lead_q25", "lead_q75", "late", "early", "never")
    yield found.finding(ALARMS, text, "episodes", part, (*_COUNTS, "recall", "recall_low", "recall_high", *leads))
    yield from _cost(found, part, row)


def _cost(found: Findings, part: pd.DataFrame, row: dict[Any, Any]) -> Iterator[Finding]:
    text = (
        f"ESS alarms cost {interval_of(row, 'false_per_1000')} false alarms per 1,000 healthy updates and alarm "
        f"{interval_of(row, 'healthy_alarmed')} of the healthy runs; precision {interval_of(row, 'precision')}. Random "
        "alarms at the same rate announce "
        f"{with_interval(row['placebo_recall'], row['placebo_low'], row['placebo_high'])} of the failures "
        f"({p_value(row['placebo_p'])})."
    )
    rates = tuple(
        f"{name}{end}" for name in ("false_per_1000", "healthy_alarmed", "precision") for end in ("", "_low", "_high")
    )
    placebo = ("placebo_recall", "placebo_low", "placebo_high", "placebo_p")
    yield found.finding(ALARMS, text, "episodes", part, (*_COUNTS, *rates, *placebo))
    text = (
        f"If every ESS alarm had stopped its run, {row['updates_saved']:.0f} updates of failed runs would have been "
        f"saved and {counted(int(row['stopped_wrongly']), 'healthy run')} stopped. That an alarm predicts failure does "
        "not show that acting on it helps; `vcpo-bench lab fork` tests that."
    )
    yield found.finding(ALARMS, text, "episodes", part, (*_COUNTS, "updates_saved", "stopped_wrongly"))


def _rivals(found: Findings) -> Iterator[Finding]:
    episodes = found.tables["episodes"]
    here = episodes[(episodes["verdict"] != TOO_FEW) & (episodes["signal"] != PRIMARY)]
    if here.empty:
        return
    best = here.sort_values(["recall", "false_per_1000"], ascending=[False, True], kind="stable").head(5)
    named = "; ".join(
        f"{row['signal']} {row['recall']:.2f}, {row['false_per_1000']:.1f}, {percent(row['healthy_alarmed'])}"
        for row in best.to_dict("records")
    )
    text = (
        "Best other signals at the same operating point (recall, false alarms per 1,000 healthy updates, healthy runs "
        f"alarmed): {named}."
    )
    yield found.finding(ALARMS, text, "episodes", best, (*_COUNTS, "recall", "false_per_1000", "healthy_alarmed"))


def _generalization(found: Findings) -> Iterator[Finding]:
    table = found.tables["generalization"]
    for name, measure in ((PRIMARY, "recall"), (MODEL, "auroc")):
        here = table[(table["signal"] == name) & (table["verdict"] != TOO_FEW)]
        order = {split: place for place, split in enumerate(SPLITS)}
        rows = here.sort_values("split", key=lambda splits: splits.map(order), kind="stable").to_dict("records")
        if not rows:
            continue
        what = "Recall of ESS alarms" if name == PRIMARY else f"AUROC of the {MODEL}"
        parts = "; ".join(f"held-out {_HELD_OUT[row['split']]} {_measured(row, measure)}" for row in rows)
        values = (measure, f"{measure}_low", f"{measure}_high")
        false = ("false_per_1000",) if measure == "recall" else ()
        yield found.finding(ALARMS, f"{what}: {parts}.", "generalization", here, ("split", *_COUNTS, *values, *false))


def _measured(row: Mapping[Any, Any], measure: str) -> str:
    cost = f" at {row['false_per_1000']:.1f} false alarms per 1,000 updates" if measure == "recall" else ""
    return interval_of(row, measure) + cost


def _one_by_one(found: Findings) -> Iterator[Finding]:
    for table, noun, says in (
        ("misses", "failure", "that ESS alarms did not announce in time"),
        ("false_alarms", "run", "in which ESS alarms were false"),
    ):
        rows = found.tables[table]
        here = rows[rows["signal"] == PRIMARY] if len(rows) else rows
        if len(here):
            text = f"`{table}` lists the {counted(len(here), noun)} {says}, one by one."
            yield found.finding(ALARMS, text, table, here, tuple(rows.columns))
