"""Truncated importance sampling of whole sequences."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from vcpo_bench.methods.assembly.ratio_methods import WeightMethod
from vcpo_bench.methods.core.batch import BATCH_AXES
from vcpo_bench.methods.core.ratios import log_of, outside, segment_mean
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class Tis(WeightMethod):
    """c = A min(u, cap), u the product of token ratios of the row (`level=sequence`), detached.

    `level=token` truncates every token ratio, `geometric` the length-normalized product, `segment` the
    geometric mean over each run of tokens in play (a turn). Logarithms are clamped as a whole. `low` truncates
    from below; `normalize=on` divides by the mean weight of the batch after truncation; `counted` lets rows
    without tokens count in that mean, as zeros (slime). Unbiased only with `seq-mean-token-sum`, before truncation.
    """

    name: ClassVar[str] = "tis"
    summary: ClassVar[str] = "detached product of token ratios per row, capped at 8"
    reference: ClassVar[str] = "Yao et al. 2025; VCPO 2602.17616"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "c = A min(w, cap), w = prod_t r_t"
    differences: ClassVar[tuple[str, ...]] = (
        "cap: 2 verl, 8 VCPO, 5 SkyRL, 3 TRL",
        "'sequence' is the geometric mean in AReaL, open-instruct and ms-swift (level=geometric)",
    )
    paper_parts: ClassVar[str] = "grpo(eps=1e-6,std=sample)"
    level: str = choice("sequence", "token", "geometric", "segment")
    cap: float = number(8.0, minimum=0)
    low: float = number(0.0, minimum=0)
    normalize: str = choice("off", "on", "counted")

    def log_weight(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, 1|T]` clamped logarithm of the ratio at this level, before truncation."""
        if self.level == "token":
            return ev.log_ratio(self.of, self.anchor, self.clamp)
        if self.level == "segment":
            return segment_mean(ev.raw(self.of, self.anchor), ev.mask).clamp(-self.clamp, self.clamp)
        geometric = self.level == "geometric"
        row = (ev.row_mean_log_ratio if geometric else ev.row_log_ratio)(self.of, self.anchor)
        return row.clamp(-self.clamp, self.clamp).unsqueeze(-1)

    def weight(self, ev: EvidenceView) -> Tensor:
        """Truncated in log space, so that no cap meets an infinity."""
        logs = self.log_weight(ev)
        low, high = log_of(self.low), log_of(self.cap)
        out = ev.buffer() if logs.shape == ev.mask.shape else torch.empty_like(logs)
        if self.level == "token" and ev.inside(self.of, self.anchor, low, high):  # no bound acts: one pass less
            return self.normalized(ev, torch.exp(logs, out=out))
        return self.normalized(ev, torch.clamp(logs, low, high, out=out).exp_())

    def capped(self, ev: EvidenceView) -> Tensor | None:
        """Where `low` or `cap` changes the weight."""
        if self.level == "token":
            return ev.outside(self.of, self.anchor, log_of(self.low), log_of(self.cap))
        return outside(self.log_weight(ev), self.low, self.cap)

    def normalized(self, ev: EvidenceView, weight: Tensor) -> Tensor:
        """Divided by its mean over tokens or rows in play, unless that is (nearly) zero."""
        if self.normalize == "off":
            return weight
        inside = ev.has_tokens.unsqueeze(-1) if weight.shape[-1] == 1 else ev.mask
        total = torch.where(inside, weight, 0.0).sum(BATCH_AXES, keepdim=True)
        rows = weight.shape[-1] == 1 and self.normalize == "counted"
        count = (ev.row_mask.unsqueeze(-1) if rows else inside).sum(BATCH_AXES, keepdim=True)
        mean = total / count.clamp(min=1)
        return torch.where(mean > 1e-8, weight / mean.clamp(min=1e-8), weight)
