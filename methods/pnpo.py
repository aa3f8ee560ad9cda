"""PNPO: the geometric mean of the ratios of the prefix as the token's weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor
from vcpo_bench.methods.assembly.ratio_methods import WeightMethod
from vcpo_bench.methods.core.ratios import log_of
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class Pnpo(WeightMethod):
    """c_t = A p_t where low <= p_t <= high, else 0, p_t = (prod_{j<=t} r_j)^(1/t), detached (PNPO 2608.01418).

    The exact correction of a token is the product over its prefix; its t-th root keeps the dependence on the prefix
    and a range that does not grow with t. The same number decides on rejection. t counts the tokens in play.
    """

    name: ClassVar[str] = "pnpo"
    summary: ClassVar[str] = "detached geometric mean of the ratios up to the token, zeroed outside 0.5..2"
    reference: ClassVar[str] = "PNPO 2608.01418"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "c_t = A p_t 1[low <= p_t <= high], p_t = exp(1/t sum_{j<=t} log r_j)"
    differences: ClassVar[tuple[str, ...]] = (
        "bounds and the gradient through the weight could not be read; 0.5 and 2 and a detached weight are ours",
    )
    low: float = number(0.5, minimum=0)
    high: float = number(2.0, minimum=0)

    def _logs(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, T]` logarithm of the prefix's geometric mean."""
        place = ev.rows.mask_float.cumsum(-1).clamp_(min=1)
        return ev.log_ratio(self.of, self.anchor, self.clamp).cumsum(-1).div_(place)

    def weight(self, ev: EvidenceView) -> Tensor:
        """Zero outside the band."""
        weight, inside = self._split(ev)
        return weight * inside

    def _split(self, ev: EvidenceView) -> tuple[Tensor, Tensor]:
        logs = self._logs(ev)
        inside = (logs >= log_of(self.low)) & (logs <= log_of(self.high))
        return logs.exp_(), inside

    def terms(self, ev: EvidenceView) -> Terms:
        """Tokens outside the band count as clipped."""
        weight, inside = self._split(ev)
        return Terms(weight=weight, kept=inside)
