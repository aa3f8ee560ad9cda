"""GSPO whose advantages may differ from token to token."""

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.methods.core.clipping import clip_bounds, differentiated
from vcpo_bench.methods.core.masking import within
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.methods.gspo import Gspo


@dataclass(frozen=True, kw_only=True)
class GspoToken(Gspo):
    """The value of s with the gradient of the token alone (GSPO 2507.18071, equation 13).

    Equal to `gspo` when the advantage is constant over the row; different for advantages per token.
    """

    name: ClassVar[str] = "gspo-token"
    summary: ClassVar[str] = "GSPO with each token's own advantage and gradient"
    formula: ClassVar[str] = "c_t = A_t s, 0 where A_t>0 and s>1+high or A_t<0 and s<1-low"
    differences: ClassVar[tuple[str, ...]] = ()

    def terms(self, ev: EvidenceView) -> Terms:
        """The row's ratio on every token, each with its own clip."""
        raw = ev.pair("current", self.anchor).row_mean_log.unsqueeze(-1)
        ratio = raw.clamp(-self.clamp, self.clamp).exp()
        kept = within(ratio, *clip_bounds(ev.advantage, 1 - self.low, 1 + self.high, ratio.dtype))
        return differentiated(ratio, kept, raw.abs() > self.clamp)
