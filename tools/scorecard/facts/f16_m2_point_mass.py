"""Fact 16: M2PO loses its trusted tokens at a point mass of lag, not in a mixed queue."""

from __future__ import annotations

from scorecard.cells import Block
from scorecard.fact import Fact, Part, Verdict
from scorecard.rules import SEEDS, above, number
from scorecard.tables import Tables
from vcpo_bench.analysis.intervals import t_interval

METHOD, LAG, RATE, BAR = "m2-mask", 64, 4e-4, 0.2
REGIMES = {
    name: Block((METHOD,), "walk", (LAG,), RATE, regime=regime)
    for name, regime in (("point mass", "fifo"), ("mixed queue", "random"))
}

_OPPOSITE: dict[Verdict, Verdict] = {"reproduced": "refuted", "refuted": "reproduced"}


def judge(tables: Tables) -> list[Part]:
    """One part per queue: the share of tokens kept once the lag is reached."""
    return [_part(name, block, tables) for name, block in REGIMES.items()]


def _part(name: str, block: Block, tables: Tables) -> Part:
    runs = tables.outcomes(block)
    kept = [1 - tables.signals(run).iloc[LAG:]["share_masked"].mean() for run in runs["run"]]
    low, high = t_interval(kept)
    mean = sum(kept) / len(kept)
    mixed = above(low, high, BAR)
    verdict = _OPPOSITE.get(mixed, mixed) if name == "point mass" else mixed
    lost = int(runs["failed"].sum())
    figure = (
        f"share of tokens kept from update {LAG} on: {number(mean, low, high)}; final reward "
        f"{runs['final'].mean():.2f}; {lost} failed"
    )
    return Part(name, verdict, figure, mean, low, high, SEEDS)


FACT = Fact(
    number=16,
    title="M2PO loses its trusted tokens",
    order=32,
    statement=(
        "M2PO loses its trusted tokens when every token has the same lag (12), and not in a queue of mixed ages (256)."
    ),
    source="VCPO (2602.17616), figure 12; M2PO (2510.01161)",
    rule=(
        f"`m2-mask` on `walk` at 4e-4 and a largest lag of {LAG}. The mean share of tokens kept from update {LAG} on "
        "is below 0.2 with `fifo` (reproduced; above: refuted) and above 0.2 with `random` (reproduced; below: "
        "refuted), t intervals over seeds."
    ),
    judge=judge,
    blocks=tuple(REGIMES.values()),
    signals=True,
)
