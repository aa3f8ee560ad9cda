"""The reward itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor
from vcpo_bench.methods.core.interfaces import Baseline
from vcpo_bench.methods.core.reach import Scope
from vcpo_bench.methods.core.view import EvidenceView


@dataclass(frozen=True, kw_only=True)
class Raw(Baseline):
    """The reward itself (Williams 1992)."""

    name: ClassVar[str] = "raw"
    summary: ClassVar[str] = "the reward, no baseline"
    reference: ClassVar[str] = "REINFORCE, Williams 1992"
    year: ClassVar[int] = 1992
    sees: ClassVar[Scope] = Scope.ROW
    formula: ClassVar[str] = "A = R"

    def advantage(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]`."""
        return ev.reward
