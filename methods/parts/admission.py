"""Which rows enter the update at all; those left out count in no baseline and no denominator."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from vcpo_bench.methods.core.interfaces import Admission
from vcpo_bench.methods.core.view import Evidence
from vcpo_bench.methods.parts.baselines import TINY, group_mean, group_std
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class ZeroVariance(Admission):
    """Leave out groups whose rewards are all equal (dynamic sampling, DAPO 2503.14476)."""

    name: ClassVar[str] = "zero-variance"
    summary: ClassVar[str] = "groups with equal rewards left out"
    reference: ClassVar[str] = "DAPO 2503.14476"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "admit groups with std_G R > 0"
    differences: ClassVar[tuple[str, ...]] = ("frameworks refill the batch; here the batch only gets smaller",)
    host: ClassVar[str] = "clip-higher"

    def admit(self, ev: Evidence) -> Tensor:
        """`[..., P, G]`."""
        return (group_std(ev) > TINY).expand_as(ev.rows)


@dataclass(frozen=True, kw_only=True)
class Goldilocks(Admission):
    """Admit groups whose mean reward lies in [low, high]: neither solved nor hopeless (Goldilocks prompts)."""

    name: ClassVar[str] = "goldilocks"
    summary: ClassVar[str] = "only groups with a success rate from 0.25 to 0.75"
    reference: ClassVar[str] = "Goldilocks RL 2602.14868"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "admit groups with low <= mean_G R <= high"
    low: float = number(0.25)
    high: float = number(0.75)

    def admit(self, ev: Evidence) -> Tensor:
        """`[..., P, G]`."""
        mean = group_mean(ev, ev.reward)
        return ((mean >= self.low) & (mean <= self.high)).expand_as(ev.rows)


@dataclass(frozen=True, kw_only=True)
class MaxLag(Admission):
    """Admit rows whose oldest token is at most `limit` updates old."""

    name: ClassVar[str] = "max-lag"
    summary: ClassVar[str] = "rows older than 8 updates left out"
    reference: ClassVar[str] = "prime-rl max_off_policy_steps; TRL, SkyRL, NeMo-RL, Tinker"
    year: ClassVar[int] = 2025
    whole_groups: ClassVar[bool] = False
    formula: ClassVar[str] = "admit rows with now - oldest version <= limit"
    differences: ClassVar[tuple[str, ...]] = ("limit: 8 prime-rl and open-instruct, 4 TRL and SkyRL, 1 NeMo-RL",)
    limit: float = number(8, minimum=0)

    def admit(self, ev: Evidence) -> Tensor:
        """`[..., P, G]`."""
        return ev.batch.lag() <= self.limit
