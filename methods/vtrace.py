"""IMPALA's V-trace with the group mean as a constant value function."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.assembly.ratio_methods import RatioMethod
from vcpo_bench.methods.core.group_statistics import group_mean, group_std, over_std
from vcpo_bench.methods.core.ratios import log_of
from vcpo_bench.methods.core.reach import Scope
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class Vtrace(RatioMethod):
    """c_t = min(pg, r_t)(R_t + v_{t+1} - V), v the V-trace target under V = group mean (IMPALA 1802.01561).

    The reward arrives with the last token in play, and gamma = 1 inside the response. It computes its own advantage,
    so a baseline added with `+` has no effect. `scale=std` divides it by the population std of the group, the
    scale of the comparison default; `scale=none` is the paper's.
    """

    name: ClassVar[str] = "vtrace"
    summary: ClassVar[str] = "truncated token ratios in an actor-critic target with the group mean as value"
    reference: ClassVar[str] = "IMPALA 1802.01561"
    year: ClassVar[int] = 2018
    sees: ClassVar[Scope] = Scope.GROUP
    reads: ClassVar[frozenset[str]] = frozenset({"reward"})
    formula: ClassVar[str] = "c_t = min(pg, r_t) (R_t + v_{t+1} - V); v_t = V + sum_k prod c min(rho, r) td"
    rho: float = number(1.0, minimum=0)
    pg: float = number(1.0, minimum=0)
    trace: float = number(1.0, minimum=0)
    scale: str = choice("std", "none")

    def targets(self, ev: EvidenceView) -> tuple[Tensor, Tensor]:
        """`[..., P, G, T]` V-trace values and the advantage before the ratio min(pg, r) multiplies it."""
        ratio = ev.ratio("current", self.anchor, self.clamp)
        value = group_mean(ev, ev.reward).to(ratio.dtype).unsqueeze(-1)
        surplus = ev.reward.to(ratio.dtype).unsqueeze(-1) - value
        place = torch.arange(ratio.shape[-1], device=ratio.device)
        last = (ev.rows.mask_float * (place + 1)).argmax(-1, keepdim=True)
        delta = ratio.gather(-1, last).clamp(max=self.rho) * surplus
        logs = (
            ev.log_ratio("current", self.anchor, self.clamp).clamp(max=max(log_of(self.trace), -80.0))
            * ev.rows.mask_float
        )
        suffix = logs.flip(-1).cumsum(-1).flip(-1) - logs.gather(-1, last)
        drift = suffix.exp_() * delta * (place <= last)
        advantage = torch.nn.functional.pad(drift[..., 1:], (0, 1)).scatter_(-1, last, surplus)
        return value + drift, advantage

    def terms(self, ev: EvidenceView) -> Terms:
        """Its own advantage times the truncated ratio."""
        weight = ev.ratio("current", self.anchor, self.clamp).clamp(max=self.pg)
        advantage = self.targets(ev)[1]
        if self.scale == "std":
            advantage = over_std(advantage, group_std(ev).to(advantage.dtype).unsqueeze(-1), 0.0)
        extra = 1.0 if ev.extra_weight is None else ev.extra_weight
        capped = ev.pair("current", self.anchor).outside(-math.inf, log_of(self.pg))
        return Terms(weight=weight, score=weight * advantage * extra, capped=capped)
