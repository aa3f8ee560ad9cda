"""Reject tokens whose two-way KL divergence is too large in either direction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.batch import POLICY_FIELDS
from vcpo_bench.methods.core.bernoulli import bernoulli_kl
from vcpo_bench.methods.core.ratio_mask import RatioMask
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class KPop(RatioMask):
    """Keep where max(KL(p || q), KL(q || p)) <= limit, p and q the token's probabilities as coins (KPop, May 2026).

    IcePop's fixed band on the ratio admits large shifts of likely tokens and rejects harmless ones of unlikely tokens;
    this band adapts to the probability. `of` and `anchor` name the two policies;
    probabilities are kept `edge` from 0 and 1.
    """

    name: ClassVar[str] = "kpop"
    summary: ClassVar[str] = "tokens with a two-way Bernoulli KL above 2 rejected"
    reference: ClassVar[str] = (
        "Guo et al. 2026, 'Taming Training-Inference Mismatch in Reinforcement Learning with Adaptive Masking Regions'"
    )
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "keep where max(KL(p||q), KL(q||p)) <= limit"
    differences: ClassVar[tuple[str, ...]] = (
        "policies: proximal and behavior in AReaL and in the authors' text (of=proximal); here current and behavior",
        "limit: 2 in AReaL's example; edge: 1e-8 there, which float32 cannot hold near 1, and 1e-6 in a port for verl",
    )
    host: ClassVar[str] = "token-tis(cap=inf)"
    limit: float = number(2.0, minimum=0)
    edge: float = number(1e-6, minimum=1e-8, maximum=0.1)

    def keep(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, T]`."""
        p, q = (ev.token_field(POLICY_FIELDS[policy]).clamp(max=0.0).exp_() for policy in (self.of, self.anchor))
        return torch.maximum(bernoulli_kl(p, q, self.edge), bernoulli_kl(q, p, self.edge)) <= self.limit
