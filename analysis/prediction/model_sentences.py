"""What hazard and risk models say about the signals."""

from __future__ import annotations

from collections.abc import Iterator

from vcpo_bench.analysis.findings import NOTE, Finding, Findings
from vcpo_bench.analysis.monitoring.signal import PRIMARY
from vcpo_bench.analysis.prediction.panel import PRIMARY_LEAD, TOO_FEW
from vcpo_bench.analysis.wording import interval_of, row_by_row, with_interval

MODELS = "models"
"""Topic: hazard ratios and risk models."""

_COUNTS = ("n_collapsed", "n_healthy", "verdict")


def hazards(found: Findings) -> Iterator[Finding]:
    """How much each signal raises the hazard of failing."""
    table = found.tables["hazard"]
    here = table[table["verdict"] != TOO_FEW]
    if here.empty:
        text = "Hazard models: too few runs or configurations."
        if len(table):
            yield found.finding(MODELS, text, "hazard", table, ("signal", *_COUNTS))
        return
    significant = here[(here["signal"] == PRIMARY) | (here["p_holm"] < 0.05)].sort_values("ratio", ascending=False)
    shown = significant if len(significant) else here
    named = "; ".join(
        f"{row['signal']} {with_interval(row['ratio'], row['low'], row['high'])}"
        + (" (not proportional)" if row["p_proportional"] < 0.05 else "")
        for row in significant.to_dict("records")
    )
    text = (
        f"Hazard ratios per standard deviation of a signal known {PRIMARY_LEAD} updates before, each beside step, lag, "
        f"learning rate and task: {named or 'none is significant after correction'}."
    )
    columns = ("signal", "ratio", "low", "high", "p_holm", "p_proportional", *_COUNTS)
    yield found.finding(MODELS, text, "hazard", shown, columns)


def risk_models(found: Findings) -> Iterator[Finding]:
    """How well models of the chance of failing rank runs, and whether their probabilities can be believed."""
    table = found.tables["models"]
    if table.empty:
        text = "Risk models need at least two seeds, so that one can be held out."
        yield found.finding(NOTE, text, "runs", found.tables["runs"], ("task", "method", "staleness", "lr", "seeds"))
    for part, row in row_by_row(table):
        if row["verdict"] == TOO_FEW:
            text = f"Risk model of {row['model']}: too few runs or configurations."
            yield found.finding(MODELS, text, "models", part, ("model", *_COUNTS))
            continue
        text = (
            f"Risk model of {row['model']}, on held-out seeds: Uno's C {interval_of(row, 'c_index')}; Brier skill over "
            f"Kaplan-Meier {interval_of(row, 'skill')}; calibration slope {row['slope']:.2f}: its probabilities are "
            f"{row['verdict']}."
        )
        values = tuple(f"{name}{end}" for name in ("c_index", "skill") for end in ("", "_low", "_high"))
        yield found.finding(MODELS, text, "models", part, ("model", *values, "slope", "verdict"))
