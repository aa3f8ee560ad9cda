"""Group mean over group standard deviation: the comparison default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor
from vcpo_bench.methods.core.group_statistics import group_mean, group_spread, over_std, singletons
from vcpo_bench.methods.core.interfaces import Baseline
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class Grpo(Baseline):
    """Group mean over group standard deviation (GRPO 2402.03300); 0 when all rewards of the group are equal."""

    name: ClassVar[str] = "grpo"
    summary: ClassVar[str] = "group mean over group standard deviation (the comparison default, population std)"
    reference: ClassVar[str] = "GRPO 2402.03300"
    year: ClassVar[int] = 2024
    formula: ClassVar[str] = "A = (R - mean_G R) / (std_G R + eps)"
    differences: ClassVar[tuple[str, ...]] = (
        "eps: 1e-6 verl, 1e-4 TRL and PipelineRL; sample std in all of them, population std in VCPO",
        "group of one: R/(1 + eps) in verl (singleton=raw), 0 elsewhere",
    )
    std: str = choice("population", "sample")
    eps: float = number(0.0, minimum=0)
    singleton: str = choice("zero", "raw")

    def advantage(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]`."""
        centered = ev.reward - group_mean(ev, ev.reward)
        advantage = over_std(centered, group_spread(ev, centered, ddof=int(self.std == "sample")), self.eps)
        return singletons(ev, advantage, self.singleton)
