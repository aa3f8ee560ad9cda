"""Statistics of the gap between sampler and trainer: of one path, and of how several add up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from vcpo_bench.bench.replay.mismatch.setup import Drawn

NEAR = (0.9, 1.1)
"""Ratios that count as near 1."""
WITHIN = (0.8, 1.25)
"""Sums of squares, as a share of the total, that count as adding up."""
_RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class Gap:
    """The log-ratio log pi - log mu of tokens that the sampler drew, over all tokens of a path.

    Attributes:
        tokens: How many.
        mean: Nats per token.
        sd: Standard deviation, nats.
        kl_k3: KL(mu || pi) per token, mean of e^l - 1 - l.
        outside: Share of tokens whose ratio lies outside [0.9, 1.1].
    """

    tokens: int
    mean: float
    sd: float
    kl_k3: float
    outside: float


def gap_of(drawn: Drawn) -> Gap:
    """The gap of a path; its tensors are [B, T]."""
    gaps = drawn.log_ratio[drawn.mask]
    ratio = gaps.exp()
    far = ((ratio < NEAR[0]) | (ratio > NEAR[1])).double().mean()
    k3 = (torch.expm1(gaps) - gaps).mean()
    return Gap(gaps.numel(), float(gaps.mean()), float(gaps.std(correction=0)), float(k3), float(far))


def ess_at(drawn: Drawn, length: int) -> tuple[float, bool]:
    """Kish ESS ratio of the sequence weights of the first `length` tokens, and whether it was measured.

    Past the longest response it is extrapolated: with independent tokens of variance s^2 it is exp(-length s^2).
    """
    if length > drawn.mask.shape[1]:
        return math.exp(-length * gap_of(drawn).sd ** 2), False
    logs = drawn.log_ratio[:, :length].sum(1)
    weights = (logs - logs.max()).exp()
    return float(weights.sum().square() / (weights.square().sum() * len(weights))), True


@dataclass(frozen=True, slots=True)
class Sum:
    """How the squares of the components add up to the square of all of them together.

    Attributes:
        value: (v0 + sum of (v - v0)) / v_all, v the variance of the gap: exact path, each component alone, all on. NaN
            where nothing differs with all of them on.
        low: Lower end of the 95% interval, from drawing prompts again.
        high: Upper end.
    """

    value: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """`add up`, `do not add up`, or `undecided`."""
        if math.isnan(self.low):
            return "undecided"
        if self.low >= WITHIN[0] and self.high <= WITHIN[1]:
            return "add up"
        return "do not add up" if self.high < WITHIN[0] or self.low > WITHIN[1] else "undecided"


def sum_of_squares(exact: Drawn, alone: Sequence[Drawn], together: Drawn, prompts: int) -> Sum:
    """Whether contributions add in quadrature.

    Args:
        exact: The exact path.
        alone: Each component by itself.
        together: All of them.
        prompts: P; responses of one prompt are consecutive, and are drawn again together on all paths.
    """
    paths = [_moments(drawn, prompts) for drawn in (exact, *alone, together)]
    random = np.random.default_rng(0)
    counts = random.multinomial(prompts, np.full(prompts, 1 / prompts), size=_RESAMPLES).astype(float)
    once = _share(paths, np.ones((1, prompts)))[0]
    drawn_again = _share(paths, counts)
    if math.isnan(once) or np.isnan(drawn_again).any():
        return Sum(once, math.nan, math.nan)
    low, high = np.quantile(drawn_again, (0.025, 0.975))
    return Sum(float(once), float(low), float(high))


def _moments(drawn: Drawn, prompts: int) -> np.ndarray:
    """`[3, P]`: tokens, sum and sum of squares of the gap, per prompt."""
    gaps, counted = drawn.log_ratio, drawn.mask.double()

    def per_prompt(values: Tensor) -> Tensor:
        return values.sum(1).view(prompts, -1).sum(1)

    return torch.stack([per_prompt(counted), per_prompt(gaps), per_prompt(gaps.square())]).numpy()


def _share(paths: Sequence[np.ndarray], counts: np.ndarray) -> np.ndarray:
    """`[R]` for counts of prompts `[R, P]`."""
    variances = []
    for moments in paths:
        tokens, total, squares = counts @ moments.T[:, 0], counts @ moments.T[:, 1], counts @ moments.T[:, 2]
        variances.append(squares / tokens - (total / tokens) ** 2)
    exact, *alone, together = variances
    with np.errstate(divide="ignore", invalid="ignore"):
        share: np.ndarray = (exact + sum(one - exact for one in alone)) / together
    return np.where(together > 0, share, np.nan)
