"""What the tables of `lab analyze weights` say in sentences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vcpo_bench.analysis.diagnostics.weights import LOW_ESS
from vcpo_bench.analysis.findings import Finding, Findings
from vcpo_bench.analysis.wording import interval_of, label, percent, span

ESS = "ess"
"""Topic: effective sample sizes."""
KL = "kl"
"""Topic: what token KL says about ESS."""
TAILS = "tails"
"""Topic: tail indices of the weights."""

_GROUP = ("task", "method", "staleness", "lr")
_OVERSTATED = 1.25


def ess_by_lag(found: Findings) -> Iterator[Finding]:
    """The range of the median ESS ratio at each lag."""
    table = found.tables["ess"]
    known = table[table["ess"].notna()]
    for lag, rows in known.groupby("staleness"):
        text = (
            f"Lag {lag}: the median ESS ratio is {span(rows, table, 'ess', '.2f')} over all updates, those after a "
            f"failure included; on average over these groups of runs, {percent(rows['starved'].mean())} of updates are "
            f"below {LOW_ESS}."
        )
        yield found.finding(ESS, text, "ess", rows, (*_GROUP, "ess", "starved"))


def finite_batch_bias(found: Findings) -> Iterator[Finding]:
    """Where a batch shows a larger ESS than infinitely many weights would."""
    table = found.tables["ess"]
    known = table[table["ess"].notna()]
    biased = known[known["finite_batch"] > _OVERSTATED * known["limit"]]
    if biased.empty:
        return
    worst = biased.sort_values("limit").iloc[0]
    text = (
        f"In {len(biased)} of {len(known)} groups of runs, the ESS ratio that a batch shows is more than 25% above its "
        f"limit for infinitely many weights. The limit is smallest for {label(worst, table)} at lag "
        f"{worst['staleness']}: Gaussian log-weights of that variance have an ESS ratio of {worst['limit']:.3f} in the "
        f"limit and {worst['finite_batch']:.3f} in a batch of {worst['n']}."
    )
    yield found.finding(ESS, text, "ess", known, (*_GROUP, "n", "variance", "limit", "finite_batch"))


def kl_says_already(found: Findings) -> Finding:
    """How much of ESS token KL times length explains."""
    table = found.tables["kl_explained"]
    row = table.iloc[0]
    text = (
        f"Token KL times length explains {interval_of(row, 'explained')} of the variance of log ESS over all updates: "
        "squared correlation with the ESS that exp(-2 L K3) predicts for a batch of this size, 95% interval over cells."
    )
    if not np.isfinite(row["explained"]):
        text = (
            "Whether ESS says more than token KL times length cannot be determined: "
            f"cells that recorded both: {row['cells']:.0f}; at least 2 are needed."
        )
    return found.finding(KL, text, "kl_explained", table, tuple(table.columns))


def tail_indices(found: Findings) -> Iterator[Finding]:
    """How often k-hat is surely above, or surely below, what its number of weights allows."""
    for quantity, rows in found.tables["tails"].groupby("quantity", sort=False):
        known = rows[rows["k"].notna()]
        if known.empty:
            reasons = ", ".join(sorted(set(rows["reason"])))
            text = f"Tail index of the {quantity}: not defined in any window ({reasons})."
            yield found.finding(TAILS, text, "tails", rows, ("key", "step", "quantity", "reason"))
            continue
        above, below = int((known["low"] > known["limit"]).sum()), int((known["high"] < known["limit"]).sum())
        text = (
            f"Tail index of the {quantity}, {len(known)} windows of about {known['n'].median():.0f} trajectories: the "
            f"95% interval of k-hat lies above what so many weights allow in {above}, below it in {below}, and "
            f"includes it in {len(known) - above - below}."
        )
        yield found.finding(TAILS, text, "tails", known, ("key", "step", "quantity", "n", "k", "low", "high", "limit"))
