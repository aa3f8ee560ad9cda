"""Group mean, scaled up when many rewards are zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor
from vcpo_bench.methods.core.batch import ROW_AXES
from vcpo_bench.methods.core.group_statistics import group_mean, singletons
from vcpo_bench.methods.core.interfaces import Baseline
from vcpo_bench.methods.core.reach import Scope
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice


@dataclass(frozen=True, kw_only=True)
class Gpg(Baseline):
    """Group mean, rescaled by the share of rows in groups that carry a signal (GPG 2504.02546)."""

    name: ClassVar[str] = "gpg"
    summary: ClassVar[str] = "group mean, scaled up for rows whose advantage is zero"
    reference: ClassVar[str] = "GPG 2504.02546"
    year: ClassVar[int] = 2025
    revision: ClassVar[int] = 2
    sees: ClassVar[Scope] = Scope.BATCH
    formula: ClassVar[str] = "A = (B / #nonzero) (R - mean_G R)"
    singleton: str = choice("zero", "raw")

    def advantage(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]`; nonzero counts the rows with a reward other than 0, as in verl."""
        rows = ev.rows.valid.sum(ROW_AXES, keepdim=True)
        nonzero = ((ev.reward != 0) & ev.rows.valid).sum(ROW_AXES, keepdim=True)
        alpha = rows.to(ev.reward.dtype) / nonzero.clamp(min=1)
        centered = singletons(ev, ev.reward - group_mean(ev, ev.reward), self.singleton)
        return alpha * centered
