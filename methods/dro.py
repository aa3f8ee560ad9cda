"""Direct reward optimization and its relatives: no ratio in front of A, a quadratic pull to the anchor."""

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.methods.assembly.ratio_methods import RatioMethod
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class Dro(RatioMethod):
    """c = A - beta log r: valid for any behavior policy, no clipping (DRO 2405.19107; Kimi k1.5 2501.12599).

    `dro(beta=0.1)` is Kimi k1.5 as ROLL has it; Trinity's OPMD writes its coefficient twice (beta = 2 tau).
    """

    name: ClassVar[str] = "dro"
    summary: ClassVar[str] = "plain advantage minus a quadratic pull toward the anchor"
    reference: ClassVar[str] = "DRO 2405.19107; Kimi k1.5 2501.12599; OPMD 2509.24203"
    year: ClassVar[int] = 2024
    pulls: ClassVar[bool] = True
    formula: ClassVar[str] = "c = A - beta log r"
    differences: ClassVar[tuple[str, ...]] = ("beta: no default in verl, 0.1 for Kimi in ROLL, doubled in Trinity",)
    beta: float = number(0.05, minimum=0)

    def terms(self, ev: EvidenceView) -> Terms:
        """The advantage, and the pull."""
        return Terms(addend=ev.log_ratio("current", self.anchor, self.clamp) * -self.beta)
