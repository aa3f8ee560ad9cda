"""Fact 8: sequence TIS with a cap of 8 survives longest among caps and masks."""

from __future__ import annotations

import numpy as np
import pandas as pd
from study_pages.markdown_table import markdown

from scorecard.cells import Block
from scorecard.fact import Fact, Part, Verdict
from scorecard.rules import number, paired
from scorecard.tables import Tables
from vcpo_bench.analysis.intervals import t_interval
from vcpo_bench.analysis.wording import listed

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
BY_CAP = {
    1: "tis(cap=1)",
    2: "tis(cap=2)",
    4: "tis(cap=4)",
    8: OWN,
    32: "tis(cap=32)",
    1_000_000_000: "tis(cap=1000000000)",
}
"""The sequence weights by cap, as the tables name them; the last is none."""
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


def note(tables: Tables) -> str:
    """Beside how long runs survive, where they end: whether a smaller cap then learns as much."""
    runs = tables.outcomes(CAPS)
    ends = ends_by_weight(runs)
    lives, finals = (ends.loc[list(BY_CAP.values()), name] for name in ("survived", "final"))
    apart = paired(runs, OWN, BY_CAP[32], "life")
    start = np.mean([tables.curve(run)["sampled_reward"].iloc[0] for run in runs["run"]])
    names = ", ".join(str(cap) for cap in BY_CAP if cap < 1000)
    return (
        f"With caps {names} and without one, runs survive {_listed(lives, 0)} updates, and "
        f"end at {_listed(finals, 2)}; the start policy has {start:.2f}. A cap of 8 "
        f"minus one of 32: {number(float(apart.mean()), *t_interval(apart))} updates survived.\n\n"
        f"{markdown(ends.reset_index())}"
    )


def ends_by_weight(runs: pd.DataFrame) -> pd.DataFrame:
    """How the runs of each weight ended, longest life first.

    Args:
        runs: Of `Tables.outcomes`.

    Returns:
        Indexed by `method`: `failed` ("2 of 8"), how many of these `rebounded`, mean updates `survived`, mean `final`
        reward with its 95% t interval over seeds, `low` and `high`.
    """
    rows = {}
    for method, own in runs.groupby("method"):
        low, high = t_interval(own["final"])
        facts = {"failed": f"{own['failed'].sum()} of {len(own)}"}
        facts |= {"rebounded": int((own["event"] == "collapse with rebound").sum()), "survived": own["life"].mean()}
        rows[method] = facts | {"final": own["final"].mean(), "low": low, "high": high}
    return pd.DataFrame.from_dict(rows, "index").rename_axis("method").sort_values("survived", ascending=False)


def _listed(values: pd.Series, digits: int) -> str:
    return listed([f"{value:.{digits}f}" for value in values])


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
    note=note,
)
