"""Half of the reward minus its group's mean."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from vcpo_bench.methods.core.group_statistics import group_mean
from vcpo_bench.methods.core.interfaces import Baseline
from vcpo_bench.methods.core.view import EvidenceView


@dataclass(frozen=True, kw_only=True)
class Newcomer(Baseline):
    """A = (R - mean_G R) / 2."""

    name: ClassVar[str] = "newcomer"
    summary: ClassVar[str] = "half of the reward minus its group's mean"
    reference: ClassVar[str] = "unpublished"
    formula: ClassVar[str] = "A = (R - mean_G R) / 2"

    def advantage(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]`."""
        return (ev.reward - group_mean(ev, ev.reward)) / 2
