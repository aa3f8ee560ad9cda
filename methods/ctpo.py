"""Cumulative-token policy optimization, and MinPRO's running minimum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.assembly.ratio_methods import RatioMethod
from vcpo_bench.methods.core.clipping import differentiated
from vcpo_bench.methods.core.masking import choose, within
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class Ctpo(RatioMethod):
    """c_t = A times the ratio of the prefix up to t, clipped in log space by t^power (CTPO 2605.07331).

    The prefix ratio is the product of the token ratios up to t (`mode=product`) or its geometric mean
    (`mode=geometric`); only its value is used, the gradient is the token's own. For A > 0 the gradient is off
    where its logarithm exceeds high t^power, for A < 0 below -low t^power or above dual t^power.
    """

    name: ClassVar[str] = "ctpo"
    summary: ClassVar[str] = "product of the ratios up to the token, bounds growing with its position"
    reference: ClassVar[str] = "CTPO 2605.07331"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = (
        "c_t = A p_t, p_t = prod_{j<=t} r_j, 0 outside exp([-low, high] t^power) on the outward side"
    )
    differences: ClassVar[tuple[str, ...]] = ("power 0 raises TypeError in the authors' code",)
    mode: str = choice("product", "geometric")
    low: float = number(0.025, minimum=0)
    high: float = number(0.05, minimum=0)
    dual: float = number(0.05, minimum=0)
    power: float = number(0.5)
    clamp: float = number(10.0, minimum=0)

    def prefix(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, T]` logarithm of the prefix ratio."""
        total = ev.log_ratio("current", self.anchor, 20.0).cumsum(-1)
        return total if self.mode == "product" else total / self._position(ev)

    @staticmethod
    def _position(ev: EvidenceView) -> Tensor:
        """`[..., P, G, T]` how many tokens in play there are up to and including this one, at least 1."""
        return ev.rows.mask.cumsum(-1).clamp(min=1).to(ev.batch.logp.dtype)

    def terms(self, ev: EvidenceView) -> Terms:
        """The prefix ratio with tokens outside the growing band at zero."""
        logs = self.prefix(ev)
        growth = self._position(ev) ** self.power
        negative = ev.advantage < 0
        outward = torch.where(ev.advantage > 0, self.high, choose(negative, self.dual, math.inf, logs.dtype))
        inward = choose(negative, -self.low, -math.inf, logs.dtype)
        above = (outward * growth).clamp_(max=self.clamp)
        kept = within(logs, inward * growth, above)
        return differentiated(logs.clamp(max=self.clamp).exp_(), kept, None)
