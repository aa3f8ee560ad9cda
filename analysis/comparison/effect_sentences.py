"""What the tables of `compare` say about stability, the halves of VCPO, speed and cost."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd

from vcpo_bench.analysis.comparison.ablation import BEST_RATE
from vcpo_bench.analysis.comparison.pairs import decidable, why_not_judged
from vcpo_bench.analysis.findings import Finding, Findings
from vcpo_bench.analysis.wording import interval_of, listed, row_by_row, verdict

STABILITY = "stability"
"""Topic: how the largest stable learning rate falls with lag."""
ABLATION = "ablation"
"""Topic: what each half of VCPO does, and whether size or timing of its steps matters."""
TIME = "time"
"""Topic: time to target and cost of an update."""

_TARGET = 0.75
_NOT_INFERIOR = 0.9
_ADDED = {
    "ess": "ESS scaling alone",
    "opob": "the OPOB baseline alone",
    "ess given opob": "ESS scaling on top of OPOB",
    "opob given ess": "OPOB on top of ESS scaling",
}
_INTERVAL = ("estimate", "low", "high")


def stability(found: Findings) -> Iterator[Finding]:
    """The exponent with which the largest stable learning rate falls."""
    table = found.tables["frontier"]
    unknown = table[table["exponent"].isna() & (table["method"] != "(all)")]
    for reason, rows in unknown.groupby("reason"):
        who = listed(list(rows["method"]))
        text = f"How the largest stable learning rate of {who} falls with lag cannot be estimated: {reason}."
        yield found.finding(STABILITY, text, "frontier", rows, ("method", "cells", "collapsed", "reason"), known=False)
    for part, row in row_by_row(table[table["exponent"].notna()]):
        who = "all methods together" if row["method"] == "(all)" else row["method"]
        words = {"more": "faster than 1/lag", "less": "more slowly than 1/lag"}
        fits = words.get(verdict(row["low"], row["high"], 1.0), "consistent with 1/lag")
        text = (
            f"The largest stable learning rate of {who} falls as lag^-a with a = "
            f"{interval_of({'value': row['exponent']} | row)}, {fits}."
        )
        if row["early"]:
            text += f" {row['early']} of {row['collapsed']} collapses came before the requested lag was reached."
        yield found.finding(
            STABILITY, text, "frontier", part, ("method", "exponent", "low", "high", "collapsed", "early")
        )


def ablation(found: Findings) -> Iterator[Finding]:
    """The effect of each half, at best learning rates or at the only one."""
    table = found.tables["ablation"]
    columns = ("family", "staleness", "at", "effect", "pairs", *_INTERVAL)
    rates = table.groupby("staleness")["at"].transform("nunique")
    table = table[(table["at"] == BEST_RATE) | (rates == 1)]
    yield from _not_judged(found, "ablation", table, "what the halves of a method add is", columns)
    for part, row in row_by_row(table[decidable(table)]):
        change = interval_of({"value": row["estimate"]} | row)
        word = verdict(row["low"], row["high"])
        if row["family"] == "vcpo, clip":
            says = {"more": "clipping takes away from it", "less": "clip gains more from it"}
            text = (
                f"Lag {row['staleness']}: the effect of ESS scaling on VCPO's base minus its effect on clip is "
                f"{change}: {says.get(word, 'the two effects cannot be told apart')}."
            )
        elif row["effect"] in _ADDED:
            says = {"more": "a gain", "less": "a loss"}
            text = (
                f"Lag {row['staleness']}, family {row['family']}: {_ADDED[row['effect']]} changes the score by "
                f"{change}, {says.get(word, 'which cannot be told apart from 0')}."
            )
        else:
            continue
        yield found.finding(ABLATION, text, "ablation", part, columns)


def step_controls(found: Findings) -> Iterator[Finding]:
    """Whether the timing of a method's small steps matters, or only their size."""
    table = found.tables["step_controls"]
    table = table[table["pairs"] > 0]
    columns = ("method", "control", "staleness", "pairs", *_INTERVAL, "margin")
    yield from _not_judged(found, "step_controls", table, "whether the timing of small steps matters is", columns)
    for part, row in row_by_row(table[decidable(table)]):
        margin = row["margin"]
        says = {
            "more": "so the timing of small steps matters, not only their size",
            "less": "so steps of the same sizes at other times do better",
        }.get(verdict(row["low"], row["high"]), "which is undecided")
        if row["low"] > -margin and row["high"] < margin:
            says = f"so the two are equivalent within {margin:g}: smaller steps do as well"
        text = (
            f"Lag {row['staleness']}: {row['method']} minus its lr-{row['control']} control is "
            f"{interval_of({'value': row['estimate']} | row)}, {says}."
        )
        yield found.finding(ABLATION, text, "step_controls", part, columns)


def _not_judged(
    found: Findings, name: str, table: pd.DataFrame, what: str, columns: tuple[str, ...]
) -> Iterator[Finding]:
    """A sentence per lag on the rows with too few pairs to judge."""
    for lag, rows in table[~decidable(table)].groupby("staleness"):
        yield found.finding(
            ABLATION, f"Lag {lag}: {what} not judged: {why_not_judged(rows)}.", name, rows, columns, False
        )


def targets(found: Findings) -> Iterator[Finding]:
    """Which method is first at three quarters of the synchronous gain."""
    table = found.tables["targets"]
    columns = ("staleness", "method", "target", "reached", "total", "median_updates", "mean_updates")
    for lag, rows in table[table["target"] == _TARGET].groupby("staleness"):
        fastest = rows.sort_values(["median_updates", "mean_updates"]).iloc[0]
        same = ["median_updates", "mean_updates", "reached", "total"]
        tied = int((rows[same] == fastest[same]).all(axis=1).sum()) - 1
        arrives = f"and {tied} more are first at" if tied else "is first at" if len(rows) > 1 else "reaches"
        text = (
            f"Lag {lag}: {fastest['method']} {arrives} {_TARGET:.0%} of the synchronous gain, after a median of "
            f"{fastest['median_updates']:.0f} updates ({fastest['reached']} of {fastest['total']} runs reach it)."
        )
        if math.isinf(fastest["median_updates"]):
            text = f"Lag {lag}: no method brings half of its runs to {_TARGET:.0%} of the synchronous gain in time."
        yield found.finding(TIME, text, "targets", rows, columns)


def speedup(found: Findings) -> Iterator[Finding]:
    """How many times sooner than synchronous training the soonest method is not inferior, per task and lag."""
    table = found.tables["non_inferiority"]
    ratios = ("updates_ratio", "updates_ratio_low", "updates_ratio_high", "seconds_ratio")
    columns = ("task", "staleness", "method", "share", "reached", "total", *ratios)
    for (task, lag), rows in table[table["share"] == _NOT_INFERIOR].groupby(["task", "staleness"]):
        best = rows.sort_values(["updates_ratio", "reached"], ascending=False).iloc[0]
        ends = [best["updates_ratio_low"], best["updates_ratio_high"]]
        span = "" if any(map(math.isnan, ends)) else f" [{ends[0]:.2f}, {ends[1]:.2f}]"
        text = (
            f"{task}, lag {lag}: {best['method']} reaches {_NOT_INFERIOR:.0%} of the synchronous gain in "
            f"{best['reached']} of {best['total']} runs, {best['updates_ratio']:.2f}{span} times as soon in updates as "
            f"synchronous training{_in_seconds(best['seconds_ratio'])}."
        )
        if not rows["reached"].any():
            text = f"{task}, lag {lag}: no run reaches {_NOT_INFERIOR:.0%} of the synchronous gain in time."
        yield found.finding(TIME, text, "non_inferiority", rows, columns)


def _in_seconds(ratio: float) -> str:
    """The same in seconds; nothing where none were recorded."""
    return "" if math.isnan(ratio) else f" and {ratio:.2f} times in seconds of this machine"


def cost(found: Findings) -> Iterator[Finding]:
    """What the halves add to the time of an update."""
    table = found.tables["cost"]
    known = table[(table["method"] != table["base"]) & table["added"].notna()]
    for part, row in row_by_row(known):
        text = (
            f"An update of {row['method']} on {row['task']} takes {row['milliseconds']:.1f} ms; the difference to "
            f"{row['base']} is {interval_of({'value': row['added']} | row, digits=1)} ms."
        )
        yield found.finding(
            TIME, text, "cost", part, ("task", "method", "milliseconds", "base", "added", "low", "high")
        )
