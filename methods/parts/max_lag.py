"""Leave out rows that are too old."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor
from vcpo_bench.methods.core.interfaces import Admission
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class MaxLag(Admission):
    """Admit rows whose oldest token is at most `limit` updates old."""

    name: ClassVar[str] = "max-lag"
    summary: ClassVar[str] = "rows older than 8 updates left out"
    reference: ClassVar[str] = "prime-rl max_off_policy_steps; TRL, SkyRL, NeMo-RL, Tinker"
    year: ClassVar[int] = 2025
    whole_groups: ClassVar[bool] = False
    reads: ClassVar[frozenset[str]] = frozenset({"version"})
    formula: ClassVar[str] = "admit rows with now - oldest version <= limit"
    differences: ClassVar[tuple[str, ...]] = ("limit: 8 prime-rl and open-instruct, 4 TRL and SkyRL, 1 NeMo-RL",)
    limit: float = number(8, minimum=0)

    def admit(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]`."""
        return ev.batch.lag() <= self.limit
