"""How a learner updates its policy: what a cell says of it beside its method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vcpo_bench.bench.optimizers.adamw import ADAMW
from vcpo_bench.bench.optimizers.catalog import Optimizer
from vcpo_bench.records.diagnostic import GradientDiagnostic


@dataclass(frozen=True, slots=True)
class LearnerSettings:
    """How a learner steps, cuts its batches, and what it measures.

    Attributes:
        lr: Learning rate before the method's step scale.
        lr_warmup: Updates over which the learning rate rises linearly to `lr`; 0: it is `lr` throughout.
        weight_decay: Decoupled weight decay of all trained parameters: each update shrinks them by
            lr x step scale x weight_decay.
        optimizer: Makes the optimizer of the trained parameters.
        diagnostics: Gradient diagnostics to measure at every update.
        measure_norms: Measure score norms for the record even if the method does not need them, in a forward pass of
            their own, so that recording more never changes the training.
        micro_tokens: Cut a batch by length into passes of at most this many positions, prompt and padding included; 0:
            no limit. The update does not depend on it.
        largest_lag: Most updates between sampling and use, for methods that ask for past weights; None: no bound.
    """

    lr: float
    lr_warmup: int = 0
    weight_decay: float = 0.0
    optimizer: Optimizer = ADAMW
    diagnostics: Sequence[GradientDiagnostic] = ()
    measure_norms: bool = False
    micro_tokens: int = 0
    largest_lag: int | None = None

    def rate(self, now: int) -> float:
        """Learning rate of update number `now`, before the step scale."""
        return warmed(self.lr, self.lr_warmup, now)


def warmed(lr: float, warmup: int, now: int) -> float:
    """Learning rate of update number `now`: it rises linearly to `lr` over `warmup` updates."""
    return lr * min(1.0, (now + 1) / warmup) if warmup else lr
