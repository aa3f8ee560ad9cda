"""PPO-OR: a squared margin in the log-ratio in place of PPO's clip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import torch
from vcpo_bench.methods.assembly.ratio_methods import RatioMethod
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class PpoOr(RatioMethod):
    """Loss max(0, margin - sign(A) log r)^2, hence c = 2 sign(A) max(0, margin - sign(A) log r) (2607.18163).

    Only the sign of the advantage counts. The pull shrinks to 0 where the token has moved its margin, and grows
    without bound on the other side; where the clamp holds the log-ratio it is 0.
    """

    name: ClassVar[str] = "ppo-or"
    summary: ClassVar[str] = "pull of the advantage's sign that fades as log r reaches 0.2"
    reference: ClassVar[str] = "OR Else 2607.18163"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "c = 2 sign(A) max(0, margin - sign(A) log r)"
    differences: ClassVar[tuple[str, ...]] = (
        "the paper leaves groups without reward differences out (+zero-variance); here their coefficients are 0",
    )
    margin: float = number(0.2, minimum=0)

    def terms(self, ev: EvidenceView) -> Terms:
        """The pull, which replaces the advantage."""
        logs = ev.log_ratio("current", self.anchor, self.clamp)
        beyond = ev.pair("current", self.anchor).beyond(self.clamp)
        direction = torch.sign(ev.advantage)
        left = (self.margin - direction * logs).clamp(min=0.0)
        if beyond is not None:
            left = torch.where(beyond, 0.0, left)
        pull = 2.0 * direction * left
        extra = ev.extra_weight
        return Terms(kept=left > 0, score=pull if extra is None else pull * extra)
