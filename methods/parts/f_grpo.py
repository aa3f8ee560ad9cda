"""GRPO with a factor that takes weight from prompts mostly solved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor
from vcpo_bench.methods.core.group_statistics import group_mean
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.methods.parts.grpo import Grpo
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class FGrpo(Grpo):
    """A = (1 - share)^gamma times GRPO's, share the mean reward of the group within 0..1 (F-GRPO 2602.06717).

    As the focal loss does: an easy prompt teaches less, so that rare correct answers are not forgotten. `right` and
    `wrong` are the rewards of a correct and of a wrong answer.
    """

    name: ClassVar[str] = "f-grpo"
    summary: ClassVar[str] = "GRPO times (1 - success rate of the group)"
    reference: ClassVar[str] = "F-GRPO 2602.06717"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = (
        "A = (1 - share_G)^gamma (R - mean_G R) / (std_G R + eps), share_G = (mean_G R - wrong)/(right - wrong)"
    )
    differences: ClassVar[tuple[str, ...]] = ("gamma: chosen per setting by the authors; 1 here",)
    gamma: float = number(1.0, minimum=0)
    right: float = number(1.0)
    wrong: float = number(0.0)

    def advantage(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]`."""
        span = self.right - self.wrong or 1.0
        share = ((group_mean(ev, ev.reward) - self.wrong) / span).clamp(0.0, 1.0)
        return super().advantage(ev) * (1 - share) ** self.gamma
