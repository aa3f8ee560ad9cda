"""The entropy bonus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.interfaces import Regularizer
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class EntropyBonus(Regularizer):
    """Adds beta times the policy's entropy at each token to the objective (Williams and Peng 1991)."""

    name: ClassVar[str] = "entropy"
    summary: ClassVar[str] = "entropy bonus on every token"
    reference: ClassVar[str] = "Williams and Peng 1991"
    year: ClassVar[int] = 1991
    formula: ClassVar[str] = "loss - beta N H(pi)"
    beta: float = number(0.001)

    def entropy(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, T]`."""
        return torch.full_like(ev.batch.logp, self.beta)
