"""GIPO: the ratio damped by a Gaussian of its own logarithm."""

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.methods.assembly.ratio_methods import RatioMethod
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class Gipo(RatioMethod):
    """c = A r exp(-(log r)^2 / (2 sigma^2)), the Gaussian detached (GIPO 2603.03955).

    Symmetric in log r: tokens that became e times likelier or less likely are trusted alike, and none is cut off.
    """

    name: ClassVar[str] = "gipo"
    summary: ClassVar[str] = "token ratio damped by a Gaussian of its logarithm, standard deviation 0.5"
    reference: ClassVar[str] = "GIPO 2603.03955"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "c = A r exp(-(log r)^2 / (2 sigma^2))"
    differences: ClassVar[tuple[str, ...]] = ("the paper trains a critic; here the advantage is that of the group",)
    sigma: float = number(0.5, minimum=1e-6)

    def terms(self, ev: EvidenceView) -> Terms:
        """The damped ratio; in log space it is one exponential."""
        logs = ev.log_ratio("current", self.anchor, self.clamp)
        weight = (logs * logs * (-0.5 / self.sigma**2) + logs).exp()
        beyond = ev.pair("current", self.anchor).beyond(self.clamp)
        return Terms(weight=weight, kept=None if beyond is None else ~beyond)
