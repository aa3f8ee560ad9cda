"""Leave episodes with a void turn out of the loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor
from vcpo_bench.methods.core.interfaces import Mask
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice


@dataclass(frozen=True, kw_only=True)
class VoidTurns(Mask):
    """Reject episodes in which a turn of the policy was neither a finished call nor an answer (SimpleTIR 2509.02479).

    Their rewards stay in the baselines, and a step rule such as `ess` still counts their weights.
    """

    name: ClassVar[str] = "void-turns"
    summary: ClassVar[str] = "episodes with a turn that was neither call nor answer left out of the loss"
    reference: ClassVar[str] = "SimpleTIR 2509.02479"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "keep the row when every turn was a finished call or an answer"
    differences: ClassVar[tuple[str, ...]] = (
        "SimpleTIR looks for code or a box in a turn; here the task says what a call and an answer are",
        "a turn that is cut off counts as void, as there",
    )
    rejected: str = choice("dropped", "counted", "apart")

    @property
    def needs(self) -> frozenset[str]:
        """Which episodes had one."""
        return frozenset({"void_turn"})

    def keep(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, 1]`."""
        return ~ev.need("void_turn").unsqueeze(-1)
