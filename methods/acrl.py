"""ACRL: a token weight whose exponent holds the gap between trainer and engine at its first value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.assembly.ratio_methods import WeightMethod
from vcpo_bench.methods.core.batch import BATCH_AXES, POLICY_FIELDS
from vcpo_bench.methods.core.drift import remembered
from vcpo_bench.methods.core.reach import Reach, Scope
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class Acrl(WeightMethod):
    """c = A r^alpha, alpha = gamma sign(A) (1 - Y/X); Y the mean |pi - mu| of the batch, X the first Y (2607.24062).

    Where Y > X the weight favors tokens that bring pi back to mu, where Y < X those that part them. It remembers X,
    the first Y of at least `floor`; until then the weight is 1. In the paper it multiplies PPO's clip and pi is the
    policy at the start of the batch: `clip(anchor=proximal)+acrl(of=proximal)`.
    """

    name: ClassVar[str] = "acrl"
    summary: ClassVar[str] = "detached ratio to a power that holds the batch's gap |pi - mu| at its first value"
    reference: ClassVar[str] = "ACRL 2607.24062"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "c = A r^alpha, alpha = gamma sign(A) (1 - Y/X), Y = mean |pi - mu|"
    differences: ClassVar[tuple[str, ...]] = (
        "written from two independent summaries of the paper; that Y is of the batch, not of a row, is said by one",
        "floor is ours: the paper's engines differ from the first update on; gamma is 0.65 in one of its settings",
    )
    paper_parts: ClassVar[str] = "grpo(eps=1e-6,std=sample)"
    gamma: float = number(0.65, minimum=0)
    floor: float = number(1e-4, minimum=0)

    def own_needs(self) -> frozenset[str]:
        """The reference is state."""
        return super().own_needs() | {"state"}

    @property
    def reach(self) -> Reach:
        """The gap is of the whole batch."""
        return Reach(Scope.BATCH)

    def weight(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, T]`."""
        here, there = (ev.token_field(POLICY_FIELDS[name]).clamp(max=0.0).exp_() for name in (self.of, self.anchor))
        gap = ((here - there).abs() * ev.rows.mask).sum(BATCH_AXES) / ev.rows.tokens.clamp(min=1)
        first = remembered(ev, "acrl.reference", 0.0)
        first = torch.where((first == 0) & (gap >= self.floor), gap, first)
        ev.state["acrl.reference"] = first
        lean = torch.where(first > 0, 1 - gap / torch.where(first > 0, first, 1.0), 0.0)
        alpha = self.gamma * torch.sign(ev.advantage) * lean.reshape(*lean.shape, 1, 1, 1)
        return (alpha * ev.log_ratio(self.of, self.anchor, self.clamp)).clamp(-self.clamp, self.clamp).exp()
