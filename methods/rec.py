"""The REC family: REINFORCE with one choice of mask and one of weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.assembly.ratio_methods import RatioMethod
from vcpo_bench.methods.core.masking import choose, within
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class Rec(RatioMethod):
    """c = A u keep with the gradient through log pi only (REC, 2509.24203).

    keep: `one-side` is PPO's clip, `two-side` keeps the band for either sign, `ring` keeps the band and
    the tokens far outside it on the side where the gradient pulls back, `none` keeps all. u: `one`,
    `ratio`, `truncated` (the ratio clipped to the outer band) or `advantage` (exp(A / temperature)).
    `level=sequence` takes mask and ratio from the geometric mean of the row.
    """

    name: ClassVar[str] = "rec"
    summary: ClassVar[str] = "REINFORCE with PPO's one-sided mask and no weight"
    reference: ClassVar[str] = "REC 2509.24203"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "c = A u keep; u in {1, r, clip(r, 1-low2, 1+high2), exp(A/temperature)}"
    differences: ClassVar[tuple[str, ...]] = ("Trinity-RFT: outer bounds 0.6 / 2.0, aggregation token-mean",)
    paper_parts: ClassVar[str] = "group-mean+token-mean"
    mask: str = choice("one-side", "two-side", "ring", "none")
    use: str = choice("one", "ratio", "truncated", "advantage")
    level: str = choice("token", "sequence")
    low: float = number(0.2, minimum=0)
    high: float = number(0.2, minimum=0)
    low2: float = number(0.6, minimum=0)
    high2: float = number(2.0, minimum=0)
    temperature: float = number(1.0, minimum=1e-6)

    def terms(self, ev: EvidenceView) -> Terms:
        """The chosen weight with the chosen mask."""
        ratio, capped = self._ratio(ev), None
        if self.use == "one":
            weight = torch.ones_like(ratio)
        elif self.use == "truncated":
            weight = ratio.clamp(1 - self.low2, 1 + self.high2)
            capped = weight != ratio
        elif self.use == "advantage":
            weight = (ev.advantage / self.temperature).clamp(-self.clamp, self.clamp).exp()
        else:
            weight = ratio
        return Terms(weight=weight, kept=self._keep(ev, ratio, ev.advantage), capped=capped)

    def _ratio(self, ev: EvidenceView) -> Tensor:
        if self.level == "token":
            return ev.ratio("current", self.anchor, self.clamp)
        return ev.pair("current", self.anchor).row_mean_log.clamp(-self.clamp, self.clamp).exp().unsqueeze(-1)

    def _keep(self, ev: EvidenceView, ratio: Tensor, advantage: Tensor) -> Tensor:
        low, high, upward = 1 - self.low, 1 + self.high, advantage >= 0
        if self.mask == "none":
            return torch.ones_like(ratio, dtype=torch.bool)
        if self.mask == "two-side":
            return within(ratio, low, high)
        if self.mask == "one-side":
            least = choose(upward, -torch.inf, low, ratio.dtype)
            return within(ratio, least, choose(upward, high, torch.inf, ratio.dtype))
        far = torch.where(upward, ratio <= 1 - self.low2, ratio >= 1 + self.high2)
        return ((ratio >= low) & (ratio <= high)) | far
