"""What is known of one update when its row of `steps.parquet` is computed: plain arrays, whatever was trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

PERCENTS = (5, 25, 50, 75, 95)
"""Quantiles of the sequence log-weights that are recorded, in percent."""

EPISODE_FACTS = ("turns", "calls", "malformed_calls", "void_turns", "observed", "truncated", "turn_limited")
"""What is counted of an episode with an environment: turns of the policy, calls carried out and not, turns that were
neither call nor answer, observed tokens; and whether it ran out of tokens (0 or 1) or of turns (0 or 1)."""


@dataclass(frozen=True)
class StepFacts:
    """One update and the n trajectories of at most T tokens that it consumed. What several columns need is cached.

    Attributes:
        step: Updates applied before this one.
        log_ratio: `[n, T]` log pi_theta - log mu per token, in nats; may hold anything where `mask` is False.
        mask: `[n, T]` True where a token carries loss.
        version: `[n, T]` updates seen by the weights that sampled each token.
        entropy: `[n, T]` entropy of the current policy at each token, in nats.
        reported: Values that other parts of the run report themselves, by column.
        measured: Values of the `GradientDiagnostic` columns; without those that could not be measured.
        method_metrics: Scalars that the method reports, by name.
        logp: `[n, T]` log-probabilities under the current policy, in nats; None where they were not kept.
        tokens_drawn: `[n, T]` token ids; None where they were not kept.
        reward: `[P, G]` rewards, n = P G, row p G + g being response g of prompt p; None where they were not kept.
        episodes: `[n, 7]` counts in the order of `EPISODE_FACTS`; None where the task has no environment.
    """

    step: int
    log_ratio: Floats
    mask: Bools
    version: Ints
    entropy: NDArray[np.floating[Any]]
    reported: Mapping[str, Any] = field(default_factory=dict)
    measured: Mapping[str, float] = field(default_factory=dict)
    method_metrics: Mapping[str, SupportsFloat] = field(default_factory=dict)
    logp: NDArray[np.floating[Any]] | None = None
    tokens_drawn: Ints | None = None
    reward: NDArray[np.floating[Any]] | None = None
    episodes: Ints | None = None

    @cached_property
    def masked_log_ratio(self) -> Floats:
        """`[n, T]` the log-ratios, 0 where `mask` is False."""
        return np.where(self.mask, self.log_ratio, 0.0)

    @cached_property
    def log_weights(self) -> Floats:
        """`[n]` sequence log-weights log pi(y|x) - log mu(y|x), in nats."""
        weights: Floats = self.masked_log_ratio.sum(-1)
        return weights

    @cached_property
    def log_weight_quantiles(self) -> Mapping[int, float]:
        """Quantiles of the sequence log-weights by percent, for `PERCENTS`."""
        found = np.quantile(self.log_weights, [percent / 100 for percent in PERCENTS])
        return dict(zip(PERCENTS, found.tolist(), strict=True))

    @cached_property
    def tokens(self) -> int:
        """Number of tokens that carry loss, at least 1."""
        return max(int(self.mask.sum()), 1)

    @cached_property
    def token_versions(self) -> Ints:
        """`[tokens]` versions of the tokens that carry loss."""
        return self.version[self.mask]

    @cached_property
    def token_lags(self) -> Ints:
        """`[tokens]` lags of the tokens that carry loss, in updates."""
        return self.step - self.token_versions

    @cached_property
    def lags(self) -> Ints:
        """Lag of each trajectory's oldest token, in updates; trajectories without a token are left out."""
        oldest: Ints = np.where(self.mask, self.step - self.version, -1).max(-1)
        return oldest[oldest >= 0]
