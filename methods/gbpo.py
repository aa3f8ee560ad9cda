"""GBPO: regression of the ratio to a bounded target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.assembly.ratio_methods import RatioMethod
from vcpo_bench.methods.core.group_statistics import TINY, group_median, group_std
from vcpo_bench.methods.core.reach import Scope
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, number

_THERE = 1e-5
"""A ratio this close to its target has reached it: less is the rounding of log-probabilities."""


@dataclass(frozen=True, kw_only=True)
class Gbpo(RatioMethod):
    """Loss |A| |r - t|, t = 1 - low + (low + high) sigmoid(z / tau), z = (R - median_G R) / std_G R (2604.18578).

    Hence c = -|A| sign(r - t) r: the token moves toward its target from either side, also inside the clip range. The
    advantage only weighs; the target comes from the rewards of the group. `std=none` leaves out the division. A ratio
    within 1e-5 of its target is there: on policy, a row at its group's median has both at 1, up to rounding.
    """

    name: ClassVar[str] = "gbpo"
    summary: ClassVar[str] = "ratio pulled toward a target within 0.8..1.2 set by the reward's place in its group"
    reference: ClassVar[str] = "GBPO 2604.18578"
    year: ClassVar[int] = 2026
    revision: ClassVar[int] = 2
    sees: ClassVar[Scope] = Scope.GROUP
    reads: ClassVar[frozenset[str]] = frozenset({"reward"})
    formula: ClassVar[str] = "c = -|A| sign(r - t) r, t = 1 - low + (low+high) sigmoid((R - median_G R)/(tau std_G R))"
    differences: ClassVar[tuple[str, ...]] = (
        "group of one: the authors' code takes median 0 and standard deviation 1; here its target is the middle",
        "the authors' code takes the sign of any difference: on policy, the rounding of two forward passes",
        "the paper divides by tau only; the authors' code also by the sample standard deviation, unless switched off",
    )
    paper_parts: ClassVar[str] = "grpo(eps=1e-6,std=sample)+token-mean"
    low: float = number(0.2, minimum=0)
    high: float = number(0.2, minimum=0)
    tau: float = number(1.0, minimum=1e-8)
    std: str = choice("sample", "none")
    eps: float = number(0.0, minimum=0)

    def terms(self, ev: EvidenceView) -> Terms:
        """The pull toward the target."""
        ratio = ev.ratio("current", self.anchor, self.clamp)
        beyond = ev.pair("current", self.anchor).beyond(self.clamp)
        gap = self.target(ev) - ratio
        pull = torch.where(gap.abs() > _THERE, torch.sign(gap), 0.0) * ratio
        if beyond is not None:
            pull = torch.where(beyond, 0.0, pull)
        kept = None if beyond is None else ~beyond
        return Terms(weight=ratio, kept=kept, score=pull * ev.weighted_advantage.abs())

    def target(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, 1]` the ratio that each row is pulled to."""
        place = ev.reward - group_median(ev, ev.reward)
        if self.std == "sample":
            std = group_std(ev, ddof=1)
            place = torch.where(std > TINY, place / (std + self.eps).clamp(min=TINY), 0.0)
        target = 1 - self.low + (self.low + self.high) * torch.sigmoid(place / self.tau)
        return target.to(ev.batch.logp.dtype).unsqueeze(-1)
