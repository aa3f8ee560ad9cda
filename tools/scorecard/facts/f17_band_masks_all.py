"""Fact 17: masking by a geometric band ends with every sequence masked and no loss."""

from __future__ import annotations

import numpy as np

from scorecard.cells import Block
from scorecard.fact import Fact, Part
from scorecard.rules import mean_within, share_above
from scorecard.tables import Tables

BAND = Block(("band",), "walk", (16,), 4e-4)
KEPT, STRETCH, FROZEN = 0.05, 50, 0.05


def judge(tables: Tables) -> list[Part]:
    """How many runs are masked for long, and whether their reward stands still meanwhile."""
    runs = tables.outcomes(BAND)
    spans = {run: _longest(1 - tables.signals(run)["share_masked"].to_numpy() < KEPT) for run in runs["run"]}
    masked = {run: span for run, span in spans.items() if span[1] - span[0] > STRETCH}
    kept = np.mean([1 - tables.signals(run)["share_masked"].mean() for run in runs["run"]])
    figure = (
        f"runs that keep less than {KEPT:g} of the tokens for more than {STRETCH} updates: {{}}; mean share kept "
        f"{kept:.2f}"
    )
    parts = [share_above("everything is masked", figure, len(masked), len(runs), 0.5)]
    if len(masked) < 2:
        return [*parts, Part("the reward stands still", "undecided", f"{len(masked)} runs are masked for long")]
    moved = [_moved(tables, run, *span) for run, span in masked.items()]
    text = "change of the held-out reward in that time: {}"
    return [*parts, mean_within("the reward stands still", text, moved, -FROZEN, FROZEN)]


def _longest(flags: np.ndarray) -> tuple[int, int]:
    """First and last index (exclusive) of the longest stretch."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(int), [0]])))
    pairs = list(zip(edges[::2], edges[1::2], strict=True))
    return max(pairs, key=lambda pair: pair[1] - pair[0], default=(0, 0))


def _moved(tables: Tables, run: int, begin: int, end: int) -> float:
    curve = tables.curve(run)
    inside = curve.loc[curve["step"].between(begin, end), "sampled_reward"]
    return float(inside.iloc[-1] - inside.iloc[0])


FACT = Fact(
    number=17,
    title="A geometric band masks everything",
    order=31,
    statement="Masking rows outside a geometric band ends with every sequence masked and no loss.",
    source="VCPO (2602.17616), baseline study, as the blog and second-hand notes report it",
    rule=(
        "`band` (0.99 to 1.01) on `walk`, lag 16, 4e-4. More than half of the runs keep less than 5% of their tokens "
        "for more than 50 updates in a row (reproduced) or fewer (refuted), Wilson. In these the held-out reward "
        "changes by at most 0.05 (reproduced) or more (refuted), t."
    ),
    judge=judge,
    blocks=(BAND,),
    signals=True,
)
