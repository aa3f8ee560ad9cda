"""Fact 22: the easy benchmark hardly separates methods, the hard one does."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from scorecard.fact import Fact, Part
from scorecard.facts.f19_vespo_sweep import SWEEP
from scorecard.rules import above, bootstrap, number, rank_correlation
from scorecard.tables import Tables

Array = NDArray[np.float64]


def judge(tables: Tables) -> list[Part]:
    """How much more of the variance the method explains on hard prompts, and whether both rank methods alike."""
    runs = tables.outcomes(SWEEP)
    seeds = [_square(own) for _, own in runs.groupby("seed")]
    value = _difference(seeds)
    low, high = bootstrap(seeds, _difference)
    means = np.mean(seeds, axis=0)
    rank = rank_correlation(means[0].ravel(), means[1].ravel())
    easy, hard = _explained(seeds)
    figure = (
        f"variance explained by the method: easy {easy:.2f}, hard {hard:.2f}, difference {number(value, low, high)}; "
        f"rank correlation of the halves over methods and N {rank:.2f}"
    )
    return [Part("hard prompts separate more", above(low, high), figure, value, low, high, "seeds, bootstrap")]


def _square(runs: pd.DataFrame) -> Array:
    """Final rewards of a seed, [halves, N, methods]."""
    halves = [runs.pivot(index="staleness", columns="method", values=name) for name in ("final_easy", "final_hard")]
    return np.stack([half.to_numpy(float) for half in halves])


def _difference(seeds: list[Array]) -> float:
    easy, hard = _explained(seeds)
    return hard - easy


def _explained(seeds: list[Array]) -> tuple[float, float]:
    """Share of the variance of final rewards that is between methods, mean over N, of the easy and the hard half."""
    rewards = np.stack(seeds)
    between, total = rewards.mean(0).var(-1), rewards.var((0, -1))
    shares = np.divide(between, total, out=np.zeros_like(total), where=total > 1e-12).mean(-1)
    return float(shares[0]), float(shares[1])


FACT = Fact(
    number=22,
    title="An easy benchmark is blind",
    order=30,
    statement=(
        "MATH-500 hardly separates the methods (only SAPO from N = 32 on), AIME does: the easy benchmark is blind."
    ),
    source="VESPO (2602.10693 v3), table 2",
    rule=(
        "Runs of fact 19, scored on the easy and the hard half of the held-out prompts. The share of variance that is "
        "between methods, mean over N, is larger on the hard half (reproduced) or on the easy half (refuted), "
        "interval by resampling seeds."
    ),
    judge=judge,
    blocks=(SWEEP,),
)
