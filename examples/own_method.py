"""A method of your own, in one file: token ratios kept between a floor and a cap.

Try it: `vcpo-bench run --plugin examples/own_method.py --methods "tis,floored(low=0.1)" --staleness 4`.
"""

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.methods.assembly.ratio_methods import RatioMethod
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class Floored(RatioMethod):
    """c = A min(max(r, low), cap), r the token ratio current/behavior."""

    name: ClassVar[str] = "floored"
    summary: ClassVar[str] = "token ratio between 0.2 and 1.5"
    reference: ClassVar[str] = "unpublished"
    formula: ClassVar[str] = "c = A min(max(r, low), cap)"
    low: float = number(0.2, minimum=0)
    cap: float = number(1.5, minimum=0)

    def terms(self, ev: EvidenceView) -> Terms:
        """The weight of every token, [..., P, G, T]."""
        return Terms(weight=ev.ratio("current", self.anchor, self.clamp).clamp(self.low, self.cap))
