"""Leave out groups that are solved or hopeless."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor
from vcpo_bench.methods.core.group_statistics import group_mean
from vcpo_bench.methods.core.interfaces import Admission
from vcpo_bench.methods.core.reach import Scope
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class Goldilocks(Admission):
    """Admit groups whose mean reward lies in [low, high]: neither solved nor hopeless (Goldilocks prompts)."""

    name: ClassVar[str] = "goldilocks"
    summary: ClassVar[str] = "only groups with a success rate from 0.25 to 0.75"
    reference: ClassVar[str] = "Goldilocks RL 2602.14868"
    year: ClassVar[int] = 2026
    sees: ClassVar[Scope] = Scope.GROUP
    reads: ClassVar[frozenset[str]] = frozenset({"reward"})
    formula: ClassVar[str] = "admit groups with low <= mean_G R <= high"
    low: float = number(0.25)
    high: float = number(0.75)

    def admit(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]`."""
        mean = group_mean(ev, ev.reward)
        return ((mean >= self.low) & (mean <= self.high)).expand_as(ev.rows.valid)
