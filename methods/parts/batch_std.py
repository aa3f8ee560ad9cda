"""Group mean over the standard deviation of the whole batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor
from vcpo_bench.methods.core.group_statistics import batch_std, group_mean, over_std
from vcpo_bench.methods.core.interfaces import Baseline
from vcpo_bench.methods.core.reach import Scope
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class BatchStd(Baseline):
    """Group mean over the standard deviation of the whole batch (TRL `scale_rewards=batch`)."""

    name: ClassVar[str] = "batch-std"
    summary: ClassVar[str] = "group mean over the batch's standard deviation"
    reference: ClassVar[str] = "TRL scale_rewards=batch; 2508.08221"
    year: ClassVar[int] = 2025
    sees: ClassVar[Scope] = Scope.BATCH
    formula: ClassVar[str] = "A = (R - mean_G R) / (std_batch R + eps)"
    eps: float = number(1e-4, minimum=0)

    def advantage(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]`."""
        return over_std(ev.reward - group_mean(ev, ev.reward), batch_std(ev), self.eps)
