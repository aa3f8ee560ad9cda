"""Reject tokens that are rewarded, improbable, and yet in a confident state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor
from vcpo_bench.methods.core.interfaces import Mask
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class Stapo(Mask):
    """Reject spurious tokens: rewarded, improbable and yet in a confident state (STAPO 2602.15620).

    A token is spurious where A > 0, its probability is below `probability` and its entropy below `entropy`
    nats; it is left out of the denominators too (`rejected=dropped`), as in the paper. Written from the paper.
    """

    name: ClassVar[str] = "stapo"
    summary: ClassVar[str] = "improbable tokens at low entropy with A > 0 rejected"
    reference: ClassVar[str] = "STAPO 2602.15620"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "reject where A>0 and pi<probability and H<entropy"
    host: ClassVar[str] = "clip-higher"
    rejected: str = choice("dropped", "counted", "apart")
    probability: float = number(0.002, minimum=0, maximum=1)
    entropy: float = number(0.5, minimum=0)

    @property
    def needs(self) -> frozenset[str]:
        """The entropy of the current policy at each token."""
        return frozenset({"entropy"})

    def keep(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, T]`."""
        improbable = ev.token_field("logp").exp() < self.probability
        return ~((ev.advantage > 0) & improbable & (ev.token_field("entropy") < self.entropy))
