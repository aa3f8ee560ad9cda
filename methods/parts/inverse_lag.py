"""A step divided by 1 + lag."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.interfaces import Step
from vcpo_bench.methods.core.reach import Scope
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice


@dataclass(frozen=True, kw_only=True)
class LagStep(Step):
    """scale = 1 / (1 + lag), or its square root (staleness-aware SGD 1511.05950).

    The lag is the largest or the mean one over the rows in play, in optimizer updates; no row means no step.
    """

    name: ClassVar[str] = "inverse-lag"
    summary: ClassVar[str] = "step divided by 1 + lag"
    reference: ClassVar[str] = "staleness-aware SGD 1511.05950"
    year: ClassVar[int] = 2015
    sees: ClassVar[Scope] = Scope.BATCH
    reads: ClassVar[frozenset[str]] = frozenset({"version"})
    formula: ClassVar[str] = "scale = (1 + lag)^-1, or ^-1/2"
    host: ClassVar[str] = "reinforce"
    rule: str = choice("linear", "sqrt")
    of: str = choice("max", "mean")

    def scale(self, ev: EvidenceView) -> Tensor:
        """Leading shape, in [0, 1]."""
        rows = ev.rows.valid & ev.rows.mask.any(-1)
        lag = torch.where(rows, ev.batch.lag(), 0).to(ev.batch.logp.dtype).clamp(min=0)
        count = rows.sum((-2, -1))
        value = lag.amax((-2, -1)) if self.of == "max" else lag.sum((-2, -1)) / count.clamp(min=1)
        scale = 1 / (1 + value)
        return torch.where(count > 0, scale.sqrt() if self.rule == "sqrt" else scale, 0.0)
