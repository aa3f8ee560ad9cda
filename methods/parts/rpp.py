"""REINFORCE++: rewards whitened over all tokens of the batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.batch import ROW_AXES
from vcpo_bench.methods.core.group_statistics import TINY, group_mean, singletons
from vcpo_bench.methods.core.interfaces import Baseline
from vcpo_bench.methods.core.reach import Scope
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, flag


@dataclass(frozen=True, kw_only=True)
class ReinforcePlusPlus(Baseline):
    """Rewards whitened over all tokens of the batch (REINFORCE++ 2501.03262); `group=on` centers groups first.

    Mean and sample variance weigh every row by its length. 0 when all values are equal.
    """

    name: ClassVar[str] = "rpp"
    summary: ClassVar[str] = "reward whitened over the tokens of the whole batch"
    reference: ClassVar[str] = "REINFORCE++ 2501.03262"
    year: ClassVar[int] = 2025
    sees: ClassVar[Scope] = Scope.BATCH
    formula: ClassVar[str] = "A = (R - mean) / sqrt(var + 1e-8), over all tokens of the batch"
    differences: ClassVar[tuple[str, ...]] = ("whitening of equal rewards leaves a residue of 2e-6 in verl, 0 here",)
    group: bool = flag(False)
    singleton: str = choice("zero", "raw")

    def advantage(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]`."""
        value = ev.reward
        if self.group:
            value = singletons(ev, ev.reward - group_mean(ev, ev.reward), self.singleton)
        length = ev.rows.lengths.to(value.dtype)
        count = length.sum(ROW_AXES, keepdim=True)
        mean = (value * length).sum(ROW_AXES, keepdim=True) / count.clamp(min=1)
        squares = (length * (value - mean) ** 2).sum(ROW_AXES, keepdim=True)
        variance = squares / (count - 1).clamp(min=1)
        whitened = (value - mean) / (variance + 1e-8).sqrt()
        return torch.where(variance > TINY**2, whitened, 0.0)
