"""Only the best row of a group counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.group_statistics import group_count, group_std, over_std
from vcpo_bench.methods.core.interfaces import Baseline
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class PassK(Baseline):
    """Only the best row of a group gets (best - second best)/(std + eps); 0 for groups of one (verl grpo_passk)."""

    name: ClassVar[str] = "passk"
    summary: ClassVar[str] = "only the best row of a group counts, by its lead over the second"
    reference: ClassVar[str] = "Pass@k training 2508.10751; verl grpo_passk"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "A = (best - second) / (std_G + eps) on the best row, else 0"
    differences: ClassVar[tuple[str, ...]] = ("verl raises for groups of one",)
    eps: float = number(1e-6, minimum=0)

    def advantage(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]`; of equal best rows the first one counts, with a lead of 0."""
        if ev.reward.shape[-1] < 2:
            return torch.zeros_like(ev.reward)
        inside = torch.where(ev.rows.valid, ev.reward, -torch.inf)
        top = inside.topk(2, dim=-1)
        lead = torch.where(group_count(ev) > 1, top.values[..., :1] - top.values[..., 1:], 0.0)
        advantage = over_std(lead, group_std(ev, ddof=1), self.eps)
        return torch.zeros_like(ev.reward).scatter(-1, top.indices[..., :1], advantage)
