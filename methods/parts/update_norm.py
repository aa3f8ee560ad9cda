"""A step no longer than a radius in the space of weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core import drift
from vcpo_bench.methods.core.interfaces import Step
from vcpo_bench.methods.core.reach import Scope
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class UpdateNorm(Step):
    """scale = min(1, radius / u), u the norm of the last update at the full rate: a trust region on the weights.

    An adaptive optimizer's updates change slowly in size, so that the last one foretells the next; a gradient norm does
    not, for the optimizer divides by it. A control for ESS scaling: it looks at the step, not at the data.
    """

    name: ClassVar[str] = "update-norm"
    summary: ClassVar[str] = "step shortened where the last update would have moved the weights beyond a radius"
    reference: ClassVar[str] = "control of this project; trust regions, Sorensen 1982"
    year: ClassVar[int] = 2026
    sees: ClassVar[Scope] = Scope.BATCH
    formula: ClassVar[str] = "scale = min(1, radius / u), u = norm of an update at full rate"
    host: ClassVar[str] = "reinforce"
    radius: float = number(0.03, minimum=0)

    @property
    def needs(self) -> frozenset[str]:
        """The norm of the last update."""
        return frozenset({"update_norm"})

    def scale(self, ev: EvidenceView) -> Tensor:
        """Leading shape, in [0, 1]; 1 until there has been an update."""
        step = drift.update_norm(ev)
        return torch.where(step > 0, self.radius / step, math.inf).clamp(max=1.0)
