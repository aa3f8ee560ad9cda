"""Length-unbiased sequence policy optimization."""

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.methods.assembly.parts import Parts
from vcpo_bench.methods.gspo import Gspo
from vcpo_bench.methods.parts.luspo_mean import LengthMean
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class Luspo(Gspo):
    """GSPO's clipped sequence loss times the length of the row (LUSPO 2602.05261)."""

    name: ClassVar[str] = "luspo"
    summary: ClassVar[str] = "GSPO whose loss is multiplied by the length of the row"
    reference: ClassVar[str] = "LUSPO 2602.05261"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "c = A s, 0 where clipped; N = 1/n, so that rows count in proportion to their length"
    differences: ClassVar[tuple[str, ...]] = ()
    low: float = number(2e-3, minimum=0)
    high: float = number(2.5e-3, minimum=0)

    @property
    def defaults(self) -> Parts:
        """The length factor is the method."""
        return Parts(aggregation=LengthMean())
