"""Score centering: subtract the sampler's expectation of the score, so that the drift toward the sampler cancels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.interfaces import Regularizer
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, integer, number


@dataclass(frozen=True, kw_only=True)
class ScoreCentering(Regularizer):
    """Adds A sum_v sg(m_v - alpha p_v) log p_v to each token's loss (score centering 2609.20807, appendix A).

    p and q are the current and the sampler's probability of token v. `mode` is the correction that the method applies
    to the token drawn: `none`, m = q; `tis`, m = clamp(p, low q, cap q); `icepop`, m = p where low q <= p <= cap q,
    else 0. So the mean of the corrected score under q is subtracted, and a common advantage moves nothing. With
    `top=K` only the sampler's K most likely tokens are known, and its tail is taken to be proportional to p:
    rho = (1 - sum q) / (1 - sum p), alpha = rho, clamp(1, low rho, cap rho), or 1 where that is within the bounds;
    since sum_v p_v grad log p_v = 0, the tail acts through -alpha p on the K. `top=0` is exact.
    """

    name: ClassVar[str] = "score-centering"
    summary: ClassVar[str] = "the sampler's expected score subtracted at every token"
    reference: ClassVar[str] = "Score centering 2609.20807"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "loss + N A sum_v sg(m_v - alpha p_v) log p_v"
    differences: ClassVar[tuple[str, ...]] = (
        "on by default in SkyRL 0.5 (the sampler's top-k), off in NeMo-RL and prime-rl (there over the sampling mask)",
        "prime-rl composes it with IPO's weight: m = q min(p/q, cap) where |p - q| <= eps",
        "acts on every token in play, also on those that a mask with rejected=counted leaves without a gradient",
    )
    mode: str = choice("none", "tis", "icepop")
    low: float = number(0.0, minimum=0)
    cap: float = number(2.0, minimum=0)
    top: int = integer(0, minimum=0)

    @property
    def needs(self) -> frozenset[str]:
        """Both distributions."""
        return frozenset({"vocabulary_logp", "behavior_vocabulary_logp"})

    @property
    def anchors(self) -> dict[str, str]:
        """The sampler's distribution."""
        return {"score centering": "behavior"}

    def vocabulary(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, T, V]`."""
        p, q = ev.distribution("vocabulary_logp"), ev.distribution("behavior_vocabulary_logp")
        if not 0 < self.top < q.shape[-1]:
            return -ev.advantage.unsqueeze(-1) * self._mass(p, q)
        head = torch.zeros_like(q).scatter_(-1, q.topk(self.top, -1).indices, 1.0)
        in_p, in_q = ((value * head).sum(-1, keepdim=True) for value in (p, q))
        rho = (1 - in_q).clamp(min=0.0) / (1 - in_p).clamp(min=1e-6)
        return -ev.advantage.unsqueeze(-1) * head * (self._mass(p, q) - self._mass(torch.ones_like(rho), rho) * p)

    def _mass(self, p: Tensor, q: Tensor) -> Tensor:
        """What the correction leaves of q at each token."""
        if self.mode == "none":
            return q
        least, most = self.low * q, self.cap * q if math.isfinite(self.cap) else torch.full_like(q, torch.inf)
        if self.mode == "tis":
            return torch.minimum(torch.maximum(p, least), most)
        return torch.where((p >= least) & (p <= most), p, 0.0)
