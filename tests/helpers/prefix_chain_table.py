"""The prefix chain with a tabular policy: how sequence, token and geometric importance sampling scale with lag.

After "Is Frontier Asynchronous RL Solved?" (Huang, 31 May 2026): a policy emits H bits and earns 1 if a fraction f of
them are 1, sampled by itself exactly K updates ago. It has one logit per position, so every quantity has a closed form.
The post gives H, K, the batch, the number of updates and the results; not the fraction, the start, the step, or whether
there is a baseline. Those here are `FRACTION`, `START`, `STEP` and none, see
`docs/benchmarks/prefix_chain.md`.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Estimator = Literal["sequence", "token", "geometric"]

FRACTION = 0.99
"""Share of the bits that must be 1."""
START = 1 / 64
"""Chance of success of the start policy, whatever the horizon."""
STEP = 5.83
"""Step size times the square root of the horizon."""
CLAMP = 20.0
"""Log-weights are clamped to this many nats, as in every method of the suite."""


@dataclass(frozen=True)
class TabularChain:
    """The environment with a tabular policy: one logit per position.

    Attributes:
        horizon: Bits of an episode, H.
        fraction: Share of them that must be 1.
    """

    horizon: int = 1024
    fraction: float = FRACTION

    @property
    def spare(self) -> int:
        """Zeros allowed in an episode that succeeds."""
        return self.horizon - math.ceil(self.fraction * self.horizon - 1e-9)

    def success(self, zero: Array) -> float:
        """Chance of success, exactly: at most `spare` zeros among independent bits with these chances of 0, [H]."""
        counts = np.zeros(self.spare + 1)
        counts[0] = 1.0
        for chance in zero:
            counts[1:] = counts[1:] * (1 - chance) + counts[:-1] * chance
            counts[0] *= 1 - chance
        return float(counts.sum())

    def start(self) -> float:
        """Logit of 1, the same at every position, at which an episode succeeds with chance `START`."""
        low, high = 0.0, 30.0
        for _ in range(60):
            middle = (low + high) / 2
            reached = self.success(np.full(self.horizon, 1 / (1 + math.exp(middle)))) > START
            low, high = (low, middle) if reached else (middle, high)
        return low


@dataclass(frozen=True)
class Weighting:
    """An importance-sampling estimator of the policy gradient, without a baseline.

    Attributes:
        estimator: One weight per sequence, per token, or the geometric mean of a sequence's token ratios.
        cap: Weights are truncated here.
    """

    estimator: Estimator = "sequence"
    cap: float = math.inf

    def gradient(
        self, chain: TabularChain, rows: Integers, columns: Integers, batch: int, now: Array, then: Array
    ) -> Array:
        """Mean over the batch of `w R grad log pi` in the logits, [H].

        Args:
            chain: The environment.
            rows: Episode of each sampled zero.
            columns: Its position.
            batch: Number of episodes.
            now: Chance of 0 under the policy being trained, [H].
            then: The same under the policy that sampled, [H].
        """
        right = np.bincount(rows, minlength=batch) <= chain.spare
        one, zero = np.log1p(-now) - np.log1p(-then), np.log(now) - np.log(then)
        if self.estimator == "token":
            zeros = np.bincount(columns[right[rows]], minlength=chain.horizon)
            ratio_one, ratio_zero = self._weight(one), self._weight(zero)
            return np.asarray(((right.sum() - zeros) * ratio_one * now - zeros * ratio_zero * (1 - now)) / batch)
        logs = one.sum() + np.bincount(rows, (zero - one)[columns], minlength=batch)
        weight = self._weight(logs / chain.horizon if self.estimator == "geometric" else logs) * right
        at_zeros = np.bincount(columns, weight[rows], minlength=chain.horizon)
        return np.asarray((weight.sum() * now - at_zeros) / batch)

    def _weight(self, logs: Array) -> Array:
        return np.asarray(np.minimum(np.exp(np.clip(logs, -CLAMP, CLAMP)), self.cap))


def train(chain: TabularChain, weighting: Weighting, lag: int, batch: int, updates: int, seed: int) -> float:
    """Chance of success after training at an exact lag; the first `lag` updates consume episodes of the start policy.

    Args:
        chain: The environment.
        weighting: The estimator.
        lag: K, in updates.
        batch: Episodes per update.
        updates: Steps of plain gradient ascent.
        seed: Of the episodes: the same for every estimator as long as the policies agree.
    """
    generator = np.random.default_rng(seed)
    logit = np.full(chain.horizon, chain.start())
    rate = STEP / math.sqrt(chain.horizon)
    past: deque[Array] = deque(maxlen=lag + 1)
    for _ in range(updates):
        past.append(1 / (1 + np.exp(logit)))
        rows, columns = sample_zeros(past[0], batch, generator)
        logit = logit + rate * weighting.gradient(chain, rows, columns, batch, past[-1], past[0])
    return chain.success(1 / (1 + np.exp(logit)))


def sample_zeros(zero: Array, batch: int, generator: np.random.Generator) -> tuple[Integers, Integers]:
    """Where a batch of episodes has zeros, which are rare: episode and position of each.

    Candidates come at the largest chance, by the gaps between them, and are thinned to each position's own.
    """
    largest, size = float(zero.max()), batch * zero.size
    expected = size * largest
    at = np.empty(0, dtype=np.int64)
    while not at.size or at[-1] < size:
        gaps = generator.geometric(largest, int(expected + 6 * math.sqrt(expected)) + 10)
        at = np.concatenate([at, (at[-1] if at.size else -1) + np.cumsum(gaps)])
    at = at[at < size]
    kept = at[generator.random(at.size) * largest < zero[at % zero.size]]
    return kept // zero.size, kept % zero.size


def limit(chain: TabularChain, weighting: Weighting, lag: int, updates: int) -> float:
    """The same with infinitely many episodes per update and no cap: only the bias of the estimator is left.

    All positions then stay alike; `n` zeros in an episode are a matter of binomial chances.
    """
    n = np.arange(chain.spare + 1)
    ways = np.array(
        [math.lgamma(chain.horizon + 1) - math.lgamma(k + 1) - math.lgamma(chain.horizon - k + 1) for k in n]
    )
    logit, rate = chain.start(), STEP / math.sqrt(chain.horizon)
    past: deque[float] = deque(maxlen=lag + 1)
    for _ in range(updates):
        past.append(1 / (1 + math.exp(logit)))
        now, then = past[-1], past[0]
        chance = np.exp(ways + n * math.log(then) + (chain.horizon - n) * math.log1p(-then))
        one, zero = math.log1p(-now) - math.log1p(-then), math.log(now) - math.log(then)
        share = n / chain.horizon  # of zeros; the others are ones
        if weighting.estimator == "token":
            score = (1 - share) * math.exp(one) * now - share * math.exp(zero) * (1 - now)
        else:
            logs = n * zero + (chain.horizon - n) * one
            score = np.exp(logs / chain.horizon if weighting.estimator == "geometric" else logs) * (now - share)
        logit += rate * float(chance @ score)
    return chain.success(np.full(chain.horizon, 1 / (1 + math.exp(logit))))
