"""REINFORCE with no correction at all: the control of every comparison."""

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.methods.assembly.method import Method
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView


@dataclass(frozen=True, kw_only=True)
class Reinforce(Method):
    """c = A: the policy gradient as if the data were on policy (Williams 1992)."""

    name: ClassVar[str] = "reinforce"
    summary: ClassVar[str] = "no correction: stale data used as if on policy"
    reference: ClassVar[str] = "Williams 1992"
    year: ClassVar[int] = 1992
    formula: ClassVar[str] = "c = A"
    paper_parts: ClassVar[str] = "raw+seq-mean-token-sum"

    def terms(self, ev: EvidenceView) -> Terms:
        """C = A."""
        return Terms()
