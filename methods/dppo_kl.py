"""DPPO with the Bernoulli KL divergence."""

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.methods.dppo_tv import Dppo
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class DppoKl(Dppo):
    """The trust region measured by KL(Bernoulli(q) || Bernoulli(p)), bounds 0.05 (DPPO 2602.04879)."""

    name: ClassVar[str] = "dppo-kl"
    summary: ClassVar[str] = "token ratio capped at 20, off where the Bernoulli KL exceeds 0.05 outwards"
    formula: ClassVar[str] = "c = A min(r, cap), 0 where KL(q||p) > bound on the outward side"
    divergence: str = choice("kl", "tv", "ratio")
    low: float = number(0.05, minimum=0)
    high: float = number(0.05, minimum=0)
