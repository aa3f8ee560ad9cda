"""DRPO: a quadratic penalty on the ratio whose strength is the token's own probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor
from vcpo_bench.methods.assembly.ratio_methods import RatioMethod
from vcpo_bench.methods.core.batch import POLICY_FIELDS
from vcpo_bench.methods.core.masking import as_number
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, number

_SQUARE_FITS = 40.0
"""The square of a ratio with at most this logarithm is finite in float32."""


@dataclass(frozen=True, kw_only=True)
class Drpo(RatioMethod):
    """Loss -A r + |A| q (r - 1)^2 / (2 eps), q the anchor's probability (DRPO 2606.09821, section 3 and equation 9).

    c = A r (1 - sign(A) q (r - 1) / eps): the gradient shrinks as the token moves outward, is 0 where the
    probability has moved by eps, and turns back beyond. `penalty=ratio` leaves q out (SPO, their equation 5). Where
    the clamp holds the log-ratio, the gradient is 0.
    """

    name: ClassVar[str] = "drpo"
    summary: ClassVar[str] = "ratio with a quadratic penalty weighted by the token's probability"
    reference: ClassVar[str] = "DRPO 2606.09821"
    year: ClassVar[int] = 2026
    pulls: ClassVar[bool] = True
    formula: ClassVar[str] = "c = A r - |A| q r (r-1) / eps"
    differences: ClassVar[tuple[str, ...]] = (
        "eps: 12.5 in the paper and in UniRL; a probability moves by at most 1, so the factor stays above 0.92",
    )
    penalty: str = choice("probability", "ratio")
    eps: float = number(12.5, minimum=1e-8)

    def terms(self, ev: EvidenceView) -> Terms:
        """The ratio, and the penalty's derivative."""
        ratio = ev.ratio("current", self.anchor, self.clamp)
        beyond = ev.pair("current", self.anchor).beyond(self.clamp)
        if self.penalty == "ratio":
            pull = (ratio - 1.0) * ratio * ev.advantage.abs() * (-1 / self.eps)
        elif self.clamp <= _SQUARE_FITS:
            pull = (ratio - 1.0) * ratio * ev.advantage.abs() * (-1 / self.eps) * self._probability(ev)
        else:  # q r first: that is the current probability, while r (r - 1) overflows
            pull = (ratio - 1.0) * (ratio * self._probability(ev)) * ev.advantage.abs() * (-1 / self.eps)
        if beyond is None:
            return Terms(weight=ratio, addend=pull)
        return Terms(weight=ratio, kept=~beyond, addend=pull * as_number(~beyond, pull.dtype))

    def _probability(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, T]` of the anchor."""
        return ev.token_field(POLICY_FIELDS[self.anchor]).clamp(max=0.0).exp_()
