"""M2PO as its authors' code has it: PPO's clip with a bound solved from a second-moment budget."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.assembly.ratio_methods import RatioMethod
from vcpo_bench.methods.core.clipping import differentiated
from vcpo_bench.methods.core.masking import within
from vcpo_bench.methods.core.ratios import judged_by
from vcpo_bench.methods.core.reach import Scope
from vcpo_bench.methods.core.selection import first_crossing
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class M2po(RatioMethod):
    """Clip at 1 - max(1 - e^-tau, low) and 1 + max(e^tau - 1, high), tau solved per batch (M2PO 2510.01161).

    tau is the largest |log r| of the tokens with A log r > 0 at which the mean of min(|log r|, tau)^2 over them stays
    below the budget. `sign=first` takes the sign of A from column 0, as the authors' code does. The paper's final
    text masks instead of clipping: `reinforce+m2-mask`.
    """

    name: ClassVar[str] = "m2po"
    summary: ClassVar[str] = "token clip with one bound per batch from a second-moment budget of 0.04"
    reference: ClassVar[str] = "M2PO 2510.01161"
    year: ClassVar[int] = 2025
    sees: ClassVar[Scope] = Scope.BATCH
    formula: ClassVar[str] = "c = A r, 0 outside 1 - max(1-e^-tau, low), 1 + max(e^tau-1, high) on the outward side"
    differences: ClassVar[tuple[str, ...]] = ("see m2-mask for the versions of the paper and of AReaL",)
    paper_parts: ClassVar[str] = "grpo(eps=1e-6,std=sample)+token-mean"
    budget: float = number(0.04, minimum=0)
    low: float = number(0.3, minimum=0)
    high: float = number(0.5, minimum=0)
    sign: str = choice("own", "first")

    def terms(self, ev: EvidenceView) -> Terms:
        """The clipped ratio."""
        ratio = ev.ratio("current", self.anchor, self.clamp)
        tau = self.bound(ev)
        high = 1 + torch.expm1(tau).clamp(min=self.high)
        low = 1 - (-torch.expm1(-tau)).clamp(min=self.low)
        above = torch.where(ev.advantage > 0, high, math.inf)
        below = torch.where(ev.advantage < 0, low, -math.inf)
        return differentiated(ratio, within(ratio, below, above), ev.pair("current", self.anchor).beyond(self.clamp))

    def bound(self, ev: EvidenceView) -> Tensor:
        """`[..., 1, 1, 1]` tau; inf when the budget is not exceeded."""
        logs = ev.log_ratio("current", self.anchor, self.clamp)
        outward = ev.rows.mask & (judged_by(ev, self.sign) * logs > 0)
        size = logs.shape[-3:].numel()
        pairs = zip((logs * logs).reshape(-1, size), outward.reshape(-1, size), strict=True)
        taus = [self._solve(one[mask]) for one, mask in pairs]
        return torch.stack(taus).reshape(*logs.shape[:-3], 1, 1, 1)

    def _solve(self, squares: Tensor) -> Tensor:
        """Scalar tau of one batch from the squared outward log-ratios `[n]`."""
        count = len(squares)
        target = self.budget * count
        if count == 0 or float(squares.sum()) <= target + 1e-12:
            return squares.new_full((), math.inf)

        def reached(value: Tensor, number: Tensor, total: Tensor) -> Tensor:
            return value * (count - number) + total >= target

        ordered, place = first_crossing(squares, reached)
        return (ordered[place - 1] - 1e-12).clamp(min=0.0).sqrt() if place > 0 else squares.new_zeros(())
