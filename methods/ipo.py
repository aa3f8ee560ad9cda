"""prime-rl's IPO: a symmetric mask on the change of the token's probability."""

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.methods.assembly.ratio_methods import RatioMethod
from vcpo_bench.methods.core.batch import POLICY_FIELDS
from vcpo_bench.methods.core.clipping import differentiated
from vcpo_bench.methods.core.masking import within
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class Ipo(RatioMethod):
    """c = A r where |p - q| <= eps, else 0, for either sign of A (prime-rl, default since 2026-08)."""

    name: ClassVar[str] = "ipo"
    summary: ClassVar[str] = "token ratio, off where the probability moved more than 0.1 either way"
    reference: ClassVar[str] = "prime-rl #3418"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "c = A r 1[|p - q| <= eps]"
    differences: ClassVar[tuple[str, ...]] = ("prime-rl: eps 0.1 with a k2 pull of 2e-3, later 0.3 without",)
    eps: float = number(0.1, minimum=0)

    def terms(self, ev: EvidenceView) -> Terms:
        """The ratio with moved tokens at zero."""
        ratio = ev.ratio("current", self.anchor, self.clamp)
        q = ev.token_field(POLICY_FIELDS[self.anchor]).exp()
        moved = ev.token_field("logp").exp().sub_(q)
        kept = within(moved, -self.eps, self.eps)
        return differentiated(ratio, kept, None)
