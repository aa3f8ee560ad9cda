"""The learning rate as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.interfaces import Step
from vcpo_bench.methods.core.view import EvidenceView


@dataclass(frozen=True, kw_only=True)
class Constant(Step):
    """The learning rate as it is."""

    name: ClassVar[str] = "constant"
    summary: ClassVar[str] = "no scaling of the step"
    formula: ClassVar[str] = "scale = 1"

    def scale(self, ev: EvidenceView) -> Tensor:
        """Leading shape."""
        return torch.ones(ev.batch.leading, dtype=ev.batch.logp.dtype, device=ev.batch.logp.device)
