"""GLM-5's double-sided token mask on the current ratio."""

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.methods.mis import Mis
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class RolloutIs(Mis):
    """c = A r where 1 - 0.2 <= r <= 1 + 0.28, else 0, r = current/behavior without a proximal policy (2602.15763)."""

    name: ClassVar[str] = "rollout-is"
    summary: ClassVar[str] = "token ratio to the sampler, zeroed outside the PPO band on both sides"
    reference: ClassVar[str] = "GLM-5 2602.15763"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "c = A r 1[low <= r <= cap]"
    differences: ClassVar[tuple[str, ...]] = ("SkyRL takes the band from its PPO clip parameters",)
    level: str = choice("token", "sequence", "geometric", "segment")
    low: float = number(0.8, minimum=0)
    cap: float = number(1.28, minimum=0)
