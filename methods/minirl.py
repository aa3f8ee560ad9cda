"""MiniRL: the first-order token surrogate, with the correction for the sampler and a clip."""

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.methods.clip import Clip
from vcpo_bench.methods.core.ratios import log_of
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class MiniRl(Clip):
    """c = A min(pi/mu, cap), detached, 0 where PPO clips pi/anchor (MiniRL 2512.01374, equation 7).

    The weight is always relative to the policy that sampled; `anchor` is that of the clip, the proximal policy in the
    paper. Without a length in the denominator, the paper's sum over tokens is the first-order expansion of the return.
    """

    name: ClassVar[str] = "minirl"
    summary: ClassVar[str] = "detached token ratio to the sampler, capped at 5, off where PPO clips"
    reference: ClassVar[str] = "MiniRL 2512.01374"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "c = A min(pi/mu, cap), 0 where A>0 and r>1+high or A<0 and r<1-low; r = pi/anchor"
    differences: ClassVar[tuple[str, ...]] = (
        "clip: around the proximal policy in the paper (anchor=proximal), around the sampler here by default",
    )
    paper_parts: ClassVar[str] = "group-mean+seq-mean-token-sum"
    low: float = number(0.2, minimum=0)
    high: float = number(0.27, minimum=0)
    cap: float = number(5.0, minimum=0)

    def own_anchors(self) -> dict[str, str]:
        """Two ratios."""
        return {"ratio": self.anchor, "minirl weight": "behavior"}

    def terms(self, ev: EvidenceView) -> Terms:
        """The weight where the clip lets it act."""
        weight = ev.ratio("current", "behavior", self.clamp).clamp(max=self.cap)
        capped = ev.pair("current", "behavior").outside(-float("inf"), log_of(self.cap))
        return Terms(weight=weight, kept=super().terms(ev).kept, capped=capped)
