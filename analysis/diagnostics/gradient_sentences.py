"""What the tables of `lab analyze gradients` say in sentences."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from vcpo_bench.analysis.findings import Finding, Findings
from vcpo_bench.analysis.wording import label, percent, rounded_rate, span

NORMS = "gradient norms"
"""Topic: norms, clipping and step scales."""
CONTRIBUTIONS = "contributions"
"""Topic: how the update is shared among trajectories."""

_GROUP = ("task", "method", "staleness", "lr")
_SHARES = ("largest_share", "noise_to_signal")


def largest_norms(found: Findings) -> Iterator[Finding]:
    """Where norms are largest and where clipping acts most, per lag."""
    table = found.tables["norms"]
    known = table[table["norm_q95"].notna()]
    for lag, rows in known.groupby("staleness"):
        largest, most = rows.sort_values("norm_q95").iloc[-1], rows.sort_values("clipped", na_position="first").iloc[-1]
        alone = len(rows) == 1
        most_often = "acts under" if alone else "acts most often under"
        clipping = f"gradient clipping {most_often} {label(most, table)} ({percent(most['clipped'])} of its updates)"
        if rows["clipped"].isna().all():
            clipping = "whether they were clipped is not recorded"
        elif not rows["clipped"].max() > 0:
            clipping = "gradient clipping never acts"
        text = (
            f"Lag {lag}: gradient norms {'' if alone else 'are largest '}under {label(largest, table)} "
            f"(median {largest['norm']:.2g}, 95th percentile {largest['norm_q95']:.2g}); {clipping}."
        )
        yield found.finding(NORMS, text, "norms", rows, (*_GROUP, "norm", "norm_q95", "clipped"))


def strongest_scaling(found: Findings) -> Iterator[Finding]:
    """Which method scales its steps down the most."""
    table = found.tables["norms"]
    scaled = table[(table["step_scale"] - 1).abs() > 1e-6]
    if scaled.empty:
        return
    row = scaled.sort_values("step_scale").iloc[0]
    together = "."
    if pd.notna(row["effective_rate"]):
        rate = rounded_rate(row["effective_rate"])
        together = f"; together with gradient clipping, the effective learning rate is {rate}."
    text = (
        f"Step scaling is strongest under {label(row, table)} at lag {row['staleness']}: the median factor is "
        f"{row['step_scale']:.2f}{together}"
    )
    yield found.finding(NORMS, text, "norms", scaled, (*_GROUP, "step_scale", "effective_rate"))


def shares_of_trajectories(found: Findings) -> Iterator[Finding]:
    """How much of the update the largest trajectory carries, and how noisy the mean gradient is, per lag."""
    table = found.tables["contribution_medians"]
    for lag, rows in table.groupby("staleness"):
        text = (
            f"Lag {lag}: the largest trajectory carries {span(rows, table, 'largest_share', '.0%')} of the summed "
            f"gradient norms; the variance of the mean gradient is {span(rows, table, 'noise_to_signal', '.2g')} "
            "times its squared norm."
        )
        yield found.finding(CONTRIBUTIONS, text, "contribution_medians", rows, (*_GROUP, *_SHARES))
