"""Fact 19: VESPO hardly loses with N, SAPO collapses."""

from __future__ import annotations

import numpy as np

from scorecard.cells import Block
from scorecard.fact import Fact, Part
from scorecard.rules import mean_above, mean_within, share_above, slopes
from scorecard.tables import Tables

VESPO, SAPO, GRPO, GSPO = "vespo", "sapo", "clip-higher", "gspo"
METHODS = (VESPO, SAPO, GRPO, GSPO)
MINIBATCHES = (4, 16, 32)
RATE, MOST_LOSS = 4e-4, 0.15
SWEEP = Block(METHODS, "walk", tuple(n - 1 for n in MINIBATCHES), RATE, regime="minibatch")


def judge(tables: Tables) -> list[Part]:
    """VESPO's loss, SAPO's collapses, and the order of the slopes."""
    runs = tables.outcomes(SWEEP)
    runs = runs.assign(n=runs["staleness"] + 1)
    final = runs.pivot(index=["method", "seed"], columns="n", values="final")
    loss = 1 - final[MINIBATCHES[-1]] / final[MINIBATCHES[0]]
    slope = slopes(runs, "n", "final")
    means = runs.groupby(["method", "n"])["final"].mean()
    text = "; ".join(f"`{method}` {', '.join(f'{v:.2f}' for v in means[method])}" for method in METHODS)
    large = runs[(runs["method"] == SAPO) & (runs["n"] > MINIBATCHES[0])]
    steeper = "final reward per doubling of N, {}"
    return [
        mean_within("vespo loses at most 15%",
                    f"relative loss of reward from N = 4 to 32: {{}}; final rewards at N = 4, 16, 32: {text}",
                    loss[VESPO], -np.inf, MOST_LOSS),
        share_above("sapo collapses", "failed at N = 16 and 32: {}", int(large["failed"].sum()), len(large), 0.5),
        mean_above("vespo is flatter than grpo and gspo", steeper.format("vespo minus the mean of the two: {}"),
                   slope[VESPO] - (slope[GRPO] + slope[GSPO]) / 2),
        mean_above("sapo is steeper than grpo and gspo", steeper.format("mean of the two minus sapo: {}"),
                   (slope[GRPO] + slope[GSPO]) / 2 - slope[SAPO]),
    ]  # fmt: skip


FACT = Fact(
    number=19,
    title="VESPO under many mini-batches",
    order=30,
    statement=(
        "N sweep, averages for N = 4 to 64: VESPO 70.0, 70.0, 67.3, 64.5, 61.8; SAPO 65.2, 51.7, 50.5, 20.9, 16.5; "
        "GRPO and GSPO between."
    ),
    source="VESPO (2602.10693 v3), table 2",
    rule=(
        "`minibatch` on `walk` at 4e-4, N = 4, 16, 32, published bounds of each method, one rate for all as "
        "published. VESPO's relative loss from N = 4 to 32 is at most 15% (reproduced) or more (refuted), t. SAPO: "
        "more than half of its runs at N = 16 and 32 are lost, Wilson. Order: the slope of final reward on log2 N is "
        "flatter for VESPO than the mean of `clip-higher` and `gspo`, and theirs flatter than SAPO's, paired by seed, "
        "t."
    ),
    judge=judge,
    blocks=(SWEEP,),
)
