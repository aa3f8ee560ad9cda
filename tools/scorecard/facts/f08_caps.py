"""Fact 8: sequence TIS with a cap of 8 survives longest among caps and masks."""

from __future__ import annotations

import numpy as np

from scorecard.cells import Block
from scorecard.fact import Fact, Part, Verdict
from scorecard.tables import Tables

RATE, LAG, SURE, RESAMPLES = 6e-4, 16, 0.95, 1000
OWN = "tis"
RIVALS = (
    "tis(cap=1)",
    "tis(cap=2)",
    "tis(cap=4)",
    "tis(cap=32)",
    "tis(cap=1e9)",
    "mis",
    "mis(cap=2,low=0.5)",
    "token-tis",
    "icepop",
)
CAPS = Block((OWN, *RIVALS), "walk", (LAG,), RATE)


def judge(tables: Tables) -> list[Part]:
    """Whether the cap of 8 is among the two longest-lived, when seeds are drawn again."""
    lives = tables.outcomes(CAPS).pivot(index="seed", columns="method", values="life")
    own, others = lives[OWN].to_numpy(), lives.drop(columns=OWN).to_numpy()
    draws = np.random.default_rng(0).integers(len(own), size=(RESAMPLES, len(own)))
    behind = others[draws].mean(1) - own[draws].mean(1)[:, None]
    top = float(((behind >= 0).sum(1) <= 1).mean())
    out = float(((behind > 0).sum(1) >= 2).mean())
    verdict: Verdict = "reproduced" if top >= SURE else "refuted" if out >= SURE else "undecided"
    order = ", ".join(f"`{name}` {life:.0f}" for name, life in lives.mean().sort_values(ascending=False).items())
    text = f"mean updates survived, of 300: {order}; in the top 2 in {top:.0%} of resamples, below it in {out:.0%}"
    return [Part("cap 8 in the top 2", verdict, text, top, unit="seeds, bootstrap")]


FACT = Fact(
    number=8,
    title="A cap of 8 survives longest",
    order=60,
    statement="Among truncated and masked weights, sequence TIS with a cap of 8 survives longest.",
    source="VCPO (2602.17616), appendix E.2, as second-hand notes report it",
    rule=(
        "`walk`, lag 16, 6e-4: six caps of sequence TIS, two sequence masks, token TIS and icepop. Mean updates to "
        "the onset of the fall, 300 at most. `tis` (cap 8) is among the two longest, ties counting against it, in 95% "
        "of resamples of seeds (reproduced), or behind two others in 95% (refuted)."
    ),
    judge=judge,
    blocks=(CAPS,),
)
