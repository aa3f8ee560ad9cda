"""ESTR: PPO's clip without the tokens whose log-ratio is large for their entropy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor
from vcpo_bench.methods.clip import Clip
from vcpo_bench.methods.core.masking import as_number
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class Estr(Clip):
    """c as PPO's where (log pi/mu)^2 <= tau (H + eps), else 0; H the entropy at the token (ESTR 2607.22186).

    The square of the log-ratio grows with the entropy by nature: at a low one a large ratio is noise of the engine, at
    a high one it is drift of the policy.
    """

    name: ClassVar[str] = "estr"
    summary: ClassVar[str] = "token clip, without tokens whose squared log-ratio exceeds their entropy"
    reference: ClassVar[str] = "Entropy-scaled trust region 2607.22186"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "c = A r, 0 where clipped or (log pi/mu)^2 > tau (H + eps)"
    differences: ClassVar[tuple[str, ...]] = (
        "entropy: of the policy that sampled the token in the paper, of the current policy here",
        "eps is the paper's; its tau could not be read, 1 is ours",
    )
    paper_parts: ClassVar[str] = "grpo(eps=1e-6,std=sample)+token-mean"
    tau: float = number(1.0, minimum=0)
    eps: float = number(0.01, minimum=0)

    def own_needs(self) -> frozenset[str]:
        """The entropy of each token."""
        return super().own_needs() | {"entropy"}

    def terms(self, ev: EvidenceView) -> Terms:
        """PPO's weight on the tokens within the region."""
        terms = super().terms(ev)
        assert terms.kept is not None
        terms.kept = terms.kept * as_number(self.inside(ev), terms.kept.dtype)
        return terms

    def inside(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, T]` bool, tokens within their trust region."""
        logs = ev.log_ratio("current", "behavior", self.clamp)
        return logs * logs <= self.tau * (ev.token_field("entropy") + self.eps)
