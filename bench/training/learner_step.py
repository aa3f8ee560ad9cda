"""What one update of a learner did, for the record."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from vcpo_bench.methods import NonFiniteEvidence, Update

GRAD_CLIP = 1.0
"""Largest l2 norm of the gradient that reaches the optimizer, as in both papers' code."""


@dataclass(frozen=True, slots=True)
class StepMade:
    """The step that the optimizer took, or was not let take.

    Attributes:
        scale: The method's multiplier of the learning rate.
        norm: l2 norm of the gradient before clipping.
        clipped: l2 norm after clipping; NaN where the weights did not move.
        nonfinite: What was not finite (`gradient` or `step_scale`), so that the step was skipped; else empty.
        measured: Values of the gradient diagnostics by name; empty where the gradient was not finite.
    """

    scale: float
    norm: float
    clipped: float
    nonfinite: str
    measured: Mapping[str, float]

    @classmethod
    def of(cls, scale: float, norm: float, measured: Mapping[str, float]) -> StepMade:
        """The step along a gradient of that norm, clipped to `GRAD_CLIP`, if all is finite."""
        if math.isfinite(norm) and math.isfinite(scale):
            return cls(scale, norm, min(norm, GRAD_CLIP), "", measured)
        return cls(scale, norm, math.nan, "gradient" if math.isfinite(scale) else "step_scale", measured)

    @property
    def moved(self) -> bool:
        """Whether the weights were stepped."""
        return not self.nonfinite


NO_STEP = StepMade(math.nan, math.nan, math.nan, "", {})
"""Of an update whose method refused the evidence."""


@dataclass(frozen=True, slots=True)
class LearnerStep:
    """What one update did.

    Attributes:
        logp: `[P, G, T]` log-probabilities under theta_t.
        entropy: `[P, G, T]` entropy of theta_t at every token, in nats.
        score_norm_sq: `[P, G]` squared score norms, where the method or the record asked for them.
        answer: What the method answered; an error where its evidence was not finite.
        made: The optimizer's step; `NO_STEP` after such an error.
        seconds_score: Time of the forward passes, in seconds.
        seconds_update: Time of coefficients, backward passes and optimizer, in seconds.
    """

    logp: Tensor
    entropy: Tensor
    score_norm_sq: Tensor | None
    answer: Update | NonFiniteEvidence
    made: StepMade
    seconds_score: float
    seconds_update: float

    @property
    def update(self) -> Update | None:
        """The method's update; None when its evidence was not finite."""
        return self.answer if isinstance(self.answer, Update) else None

    @property
    def nonfinite(self) -> str:
        """What was not finite: a field of the evidence, `gradient` or `step_scale`; empty where the weights moved."""
        return self.answer.field if isinstance(self.answer, NonFiniteEvidence) else self.made.nonfinite
