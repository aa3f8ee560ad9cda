"""Gradient alignment control: acts on the gradient itself, from three inner products."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.interfaces import Step
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class Gac(Step):
    """Project out the part of the gradient that repeats the previous one too closely (GAC 2603.01501).

    With cos the cosine of consecutive gradients: up to `low` nothing happens; between `low` and `high` only
    the share low/cos of the component along the previous gradient stays; from `high` on the step is skipped.
    The learner keeps the previous gradient and calls `combine`. Written from the paper.
    """

    name: ClassVar[str] = "gac"
    summary: ClassVar[str] = "gradient component along the previous gradient reduced when they align"
    reference: ClassVar[str] = "GAC 2603.01501"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "g <- g - (1 - low/cos) <g,p>/<p,p> p for low < cos < high; skipped for cos >= high"
    host: ClassVar[str] = "reinforce"
    low: float = number(0.05, minimum=0, maximum=1)
    high: float = number(0.3, minimum=0, maximum=1)

    def scale(self, ev: EvidenceView) -> Tensor:
        """Leading shape: 1, since it acts on the gradient instead."""
        return torch.ones(ev.batch.leading, dtype=ev.batch.logp.dtype, device=ev.batch.logp.device)

    def combine(self, dots: tuple[float, float, float]) -> tuple[float, float]:
        """(1, 0) when there is no previous gradient, (0, 0) to skip the step, also when a product is not a number."""
        own, cross, previous = dots
        if not all(math.isfinite(value) for value in dots):
            return 0.0, 0.0
        if own <= 0 or previous <= 0:
            return 1.0, 0.0
        cosine = cross / math.sqrt(own) / math.sqrt(previous)
        if cosine <= self.low:
            return 1.0, 0.0
        if cosine >= self.high:
            return 0.0, 0.0
        return 1.0, -(1 - self.low / cosine) * cross / previous
