"""A cap on the ratio of tokens with a negative advantage only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.assembly.ratio_methods import WeightMethod
from vcpo_bench.methods.core.ratios import log_of
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class NegativesCap(WeightMethod):
    """c = A r for A >= 0, A min(r, cap) for A < 0, detached.

    Pushing down a token that has become likely is the one direction in which a large ratio feeds itself: the others
    shrink the ratio they are weighted with, or are bounded by 1/q.
    """

    name: ClassVar[str] = "negatives-cap"
    summary: ClassVar[str] = "detached token ratio, capped at 2 where the advantage is negative"
    reference: ClassVar[str] = (
        "community practice, 2026; the one-sided cap of dual-clip PPO 1912.09729, kept as a weight"
    )
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "c = A r if A>=0, A min(r, cap) if A<0"
    differences: ClassVar[tuple[str, ...]] = ("dual-clip zeroes the gradient above the cap; here it stays at the cap",)
    cap: float = number(2.0, minimum=0)

    def weight(self, ev: EvidenceView) -> Tensor:
        """Truncated where the advantage is negative."""
        ratio = ev.ratio(self.of, self.anchor, self.clamp)
        return torch.minimum(ratio, self._ceiling(ev, ratio))

    def capped(self, ev: EvidenceView) -> Tensor | None:
        """Where the cap changes the weight."""
        above = ev.pair(self.of, self.anchor).outside(-torch.inf, log_of(self.cap))
        return None if above is None else above & (ev.advantage < 0)

    def _ceiling(self, ev: EvidenceView, like: Tensor) -> Tensor:
        cap, none = like.new_full((), self.cap), like.new_full((), torch.inf)
        return torch.where(ev.advantage < 0, cap, none)
