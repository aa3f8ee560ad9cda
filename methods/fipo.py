"""Future-influence policy optimization."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.clip import Clip
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import flag, number


@dataclass(frozen=True, kw_only=True)
class Fipo(Clip):
    """PPO's clip times a detached weight: what happened to the tokens that follow (FIPO 2603.19835).

    influence_t = exp(sum_{j>=t} gamma^(j-t) log r_j), gamma = 2^(-1/half_life), clipped to [1, 1+range] (`high_only`)
    or 1 +- range; for A < 0 and r > safe it is clipped to [0.8, 1] instead.
    """

    name: ClassVar[str] = "fipo"
    summary: ClassVar[str] = "token clip weighted by the discounted drift of the tokens that follow"
    reference: ClassVar[str] = "FIPO 2603.19835; ms-swift"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "c_t = A r_t f_t, f_t = clip(exp(sum_{j>=t} gamma^(j-t) log r_j), 1, 1+range)"
    half_life: float = number(32.0, minimum=1e-3)
    range: float = number(0.2, minimum=0)
    high_only: bool = flag(True)
    safe: float = number(4.0, minimum=0)
    ignore: float = number(10.0, minimum=0)

    def influence(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, T]` the weight."""
        ratio = ev.ratio("current", self.anchor, self.clamp)
        weight = self.future(ev).clamp(-self.clamp, self.clamp).exp_()
        if math.isfinite(self.range):
            weight = weight.clamp(1.0 if self.high_only else 1 - self.range, 1 + self.range)
        if float(ratio.max()) <= self.safe:
            return weight
        risky = (ev.advantage < 0) & (ratio > self.safe)
        return torch.where(risky, weight.clamp(0.8, 1.0), weight)

    def future(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, T]` discounted sum of the log-ratios from each token on, those beyond `ignore` left out."""
        logs = ev.log_ratio("current", self.anchor, self.clamp)
        if self.ignore > 0 and float(logs.max()) > math.log(self.ignore):
            logs = torch.where(logs <= math.log(self.ignore), logs, 0.0)
        return discounted_suffix_sum(logs, 2 ** (-1 / self.half_life))

    def terms(self, ev: EvidenceView) -> Terms:
        """PPO's weight times the influence."""
        terms = super().terms(ev)
        assert terms.weight is not None
        terms.weight = terms.weight * self.influence(ev)
        return terms


def discounted_suffix_sum(value: Tensor, gamma: float) -> Tensor:
    """sum_{j>=t} gamma^(j-t) value_j over the last axis, by doubling: log2(T) passes, no powers of 1/gamma."""
    total, shift, factor = value, 1, gamma
    while shift < value.shape[-1]:
        later = torch.nn.functional.pad(total[..., shift:], (0, shift))
        total = total + factor * later
        shift, factor = 2 * shift, factor * factor
    return total
