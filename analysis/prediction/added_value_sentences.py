"""Whether what ESS says goes beyond the alternatives: matching, null models, rivals, and other definitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pandas as pd

from vcpo_bench.analysis.findings import Finding, Findings
from vcpo_bench.analysis.monitoring.signal import PRIMARY
from vcpo_bench.analysis.prediction.added_value_of_ess import BEST
from vcpo_bench.analysis.prediction.panel import PRIMARY_LEAD, TOO_FEW
from vcpo_bench.analysis.prediction.sentences import value_or_too_few
from vcpo_bench.analysis.wording import interval_of, p_value, row_by_row, with_interval

ADDED = "added value"
"""Topic: what ESS adds to what is known otherwise."""
ROBUSTNESS = "robustness"
"""Topic: other definitions of failure, and parts of the study."""

_AREA = ("signal", "n_collapsed", "n_healthy", "value", "low", "high", "verdict")
_NULLS = {
    "permuted within lag": "series reassigned at random among the configurations of a task, regime and lag",
    "permuted within lag and method": "series reassigned at random among the configurations of one method there",
    "permuted within configuration": "series reassigned at random among the seeds of one configuration",
    "shifted": "the failed run and its controls read at one random earlier step",
    "surrogate": "stationary series with each run's own mean and spread",
}


def matching(found: Findings) -> Iterator[Finding]:
    """ESS against controls that share less, or more, with the failed run."""
    here = _of_ess(found.tables["matching"])
    if not (here["verdict"] == TOO_FEW).all():
        text = f"AUROC of ESS by what controls are matched on: {_named(here, lambda row: str(row['match']))}."
        yield found.finding(ADDED, text, "matching", here, ("match", *_AREA))


def null_models(found: Findings) -> Iterator[Finding]:
    """ESS against what a signal without the information in question scores."""
    columns = ("signal", "null", "value", "null_mean", "null_low", "null_high", "p")
    for part, row in row_by_row(_of_ess(found.tables["nulls"])):
        word = "beats" if row["p"] < 0.05 else "does not beat"
        null = with_interval(row["null_mean"], row["null_low"], row["null_high"])
        text = (
            f"Null model, {_NULLS[row['null']]}: the AUROC of ESS, {row['value']:.2f}, {word} {null} (one-sided "
            f"{p_value(row['p'])})."
        )
        yield found.finding(ADDED, text, "nulls", part, columns)


def increments(found: Findings) -> Iterator[Finding]:
    """ESS against each rival, and models with it against the same without it."""
    table = found.tables["increment"]
    columns = ("lead", "comparison", "baseline", "n_collapsed", "n_healthy")
    for part, row in row_by_row(table[table["lead"] == PRIMARY_LEAD]):
        what = f"{row['comparison']} ({row['baseline']})" if row["comparison"] == BEST else str(row["comparison"])
        if row["verdict"] == TOO_FEW:
            text = f"{what}: too few runs or configurations ({row['n_collapsed']} failed, {row['n_healthy']} healthy)."
            yield found.finding(ADDED, text, "increment", part, (*columns, "verdict"))
            continue
        text = (
            f"{what}: AUROC {row['with']:.2f} against {row['without']:.2f}, difference {interval_of(row)}: "
            f"{row['verdict']}{_after_correction(row)}."
        )
        results = ("without", "with", "value", "low", "high", "p_holm", "verdict")
        yield found.finding(ADDED, text, "increment", part, (*columns, *results))


def other_definitions(found: Findings) -> Iterator[Finding]:
    """ESS under other definitions of failure, and within one task, lag, learning rate or method."""
    here = _judged(found.tables["definitions"])
    if len(here):
        text = f"AUROC of ESS under other definitions of failure: {_named(here, lambda row: str(row['definition']))}."
        yield found.finding(ROBUSTNESS, text, "definitions", here, ("definition", *_AREA))
    here = _judged(found.tables["regimes"])
    if len(here):
        text = f"AUROC of ESS within parts of the study: {_named(here, _part)}."
        yield found.finding(ROBUSTNESS, text, "regimes", here, ("column", "value_of", *_AREA))


_AXES = {"task": "task", "staleness": "lag", "lr": "learning rate", "method": "method"}


def _part(row: Mapping[Any, Any]) -> str:
    return f"{_AXES[row['column']]} {row['value_of']}"


def _of_ess(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["signal"] == PRIMARY]


def _judged(table: pd.DataFrame) -> pd.DataFrame:
    if table.empty:
        return table
    here = _of_ess(table)
    return here[here["verdict"] != TOO_FEW]


def _named(table: pd.DataFrame, name: Callable[[Mapping[Any, Any]], str]) -> str:
    return "; ".join(f"{name(row)} {value_or_too_few(row)}" for row in table.to_dict("records"))


def _after_correction(row: Mapping[Any, Any]) -> str:
    fails = row["verdict"] in ("more", "less") and row["comparison"] != BEST and not row["p_holm"] < 0.05
    return ", but not after Holm's correction" if fails else ""
