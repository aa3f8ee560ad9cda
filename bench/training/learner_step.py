"""What one optimizer update did, for the record, and its learning rate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from vcpo_bench.methods import Update


@dataclass(frozen=True, slots=True)
class LearnerStep:
    """What one update did.

    Attributes:
        logp: `[P, G, T]` log-probabilities under theta_t.
        entropy: `[P, G, T]` entropy of theta_t at every token, in nats.
        score_norm_sq: `[P, G]` squared score norms, where the method or the record asked for them.
        update: The method's answer; None when its evidence was not finite.
        nonfinite: What was not finite (a field of the evidence, `gradient` or `step_scale`), so that the step was
            skipped; else empty.
        grad_norm: l2 norm of the gradient before clipping.
        grad_norm_clipped: l2 norm after clipping.
        step_scale: The method's multiplier of the learning rate.
        routers: Shares of changed router decisions by column, see `routing.router_changes`.
        measured: Values of the gradient diagnostics by name; empty where the gradient was not finite.
        seconds_score: Time of the forward passes, in seconds.
        seconds_update: Time of coefficients, backward passes and optimizer, in seconds.
    """

    logp: Tensor
    entropy: Tensor
    score_norm_sq: Tensor | None
    update: Update | None
    nonfinite: str
    grad_norm: float
    grad_norm_clipped: float
    step_scale: float
    routers: Mapping[str, float]
    measured: Mapping[str, float]
    seconds_score: float
    seconds_update: float


def warmed(lr: float, warmup: int, now: int) -> float:
    """Learning rate of update number `now`: it rises linearly to `lr` over `warmup` updates."""
    return lr * min(1.0, (now + 1) / warmup) if warmup else lr
