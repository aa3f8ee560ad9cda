"""SIS: PPO's clip in which tokens that pass a rejection test count as drawn from the current policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.clip import Clip
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, integer


@dataclass(frozen=True, kw_only=True)
class Sis(Clip):
    """c = A (a + (1 - a) r kept), a = min(1, r / M) on the sampler's `top` tokens, else 0 (SIS 2607.04728).

    The rejection test takes the sampler as proposal: M is the largest p/q among its `top` most likely tokens, and a
    token drawn from them is accepted with probability a. An accepted token has ratio 1, another keeps its own and
    PPO's clip. c is the mean over the test's draw. `top=0`: the whole vocabulary.
    """

    name: ClassVar[str] = "sis"
    summary: ClassVar[str] = "token clip, with ratio 1 for the share of a token that a rejection test accepts"
    reference: ClassVar[str] = "Selective importance sampling 2607.04728"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "c = A (a + (1 - a) r [PPO keeps r]), a = min(1, r / M), M = max over top-k of p/q"
    differences: ClassVar[tuple[str, ...]] = (
        "the paper draws accepted or not for each token; here its mean, which has the same expectation",
        "written from notes on the paper and a port of its Algorithm 1 by others; k is that port's",
    )
    paper_parts: ClassVar[str] = "grpo(eps=1e-6,std=sample)+token-mean"
    anchor: str = choice("behavior")
    top: int = integer(10, minimum=0)

    def own_needs(self) -> frozenset[str]:
        """Both distributions."""
        return super().own_needs() | {"vocabulary_logp", "behavior_vocabulary_logp"}

    def terms(self, ev: EvidenceView) -> Terms:
        """The mean ratio over the test."""
        plain = super().terms(ev)
        assert plain.weight is not None
        assert plain.kept is not None
        accepted = self.acceptance(ev, plain.weight)
        return Terms(weight=accepted + (1 - accepted) * plain.weight * plain.kept, capped=plain.kept == 0)

    def acceptance(self, ev: EvidenceView, ratio: Tensor) -> Tensor:
        """`[..., P, G, T]` the probability a of passing the test."""
        p, q = ev.distribution("vocabulary_logp"), ev.distribution("behavior_vocabulary_logp")
        top = min(self.top or q.shape[-1], q.shape[-1])
        likely, places = q.topk(top, -1)
        envelope = torch.where(likely > 0, p.gather(-1, places) / likely, 0.0).amax(-1)
        drawn = ev.token_field("behavior_logp").exp() >= likely[..., -1] * (1 - 1e-6)
        return torch.where(drawn & (envelope > 0), (ratio / envelope).clamp(max=1.0), 0.0)
