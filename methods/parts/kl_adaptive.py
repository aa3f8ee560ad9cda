"""A step steered by the KL divergence between the sampler and the current policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.batch import BATCH_AXES
from vcpo_bench.methods.core.drift import remembered
from vcpo_bench.methods.core.interfaces import Step
from vcpo_bench.methods.core.reach import Scope
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class KlAdaptive(Step):
    """The scale is divided by `factor` when KL > 2 target, multiplied when KL < target / 2, within [floor, 1].

    KL(mu || pi) per token is estimated by the mean of r - 1 - log r on the batch, which the sampler drew. The rule of
    PPO's adaptive penalty (1707.06347, section 4), on the learning rate as in rl_games and RSL-RL. It remembers.
    """

    name: ClassVar[str] = "kl-adaptive"
    summary: ClassVar[str] = "step divided or multiplied by 1.5 to hold the token KL near 0.01"
    reference: ClassVar[str] = "PPO 1707.06347, section 4; rl_games"
    year: ClassVar[int] = 2017
    sees: ClassVar[Scope] = Scope.BATCH
    formula: ClassVar[str] = "scale <- scale / 1.5 if KL > 2 target, 1.5 scale if KL < target/2, within [floor, 1]"
    differences: ClassVar[tuple[str, ...]] = (
        "target: 0.008 in rl_games and 0.01 in RSL-RL, per action of one environment step",
        "their KL is that of one update, measured after it; here it is that of the lag, measured before the step",
        "so it contains the mismatch of sampler and trainer: a target below half of that ends at the floor",
    )
    host: ClassVar[str] = "reinforce"
    target: float = number(0.01, minimum=0)
    factor: float = number(1.5, minimum=1)
    floor: float = number(0.01, minimum=0, maximum=1)
    clamp: float = number(20.0, minimum=0)

    @property
    def needs(self) -> frozenset[str]:
        """The scale is state."""
        return frozenset({"state"})

    @property
    def anchors(self) -> dict[str, str]:
        """The divergence."""
        return {"kl of the step": "behavior"}

    def scale(self, ev: EvidenceView) -> Tensor:
        """Leading shape, in [floor, 1]."""
        logs = ev.log_ratio("current", "behavior", self.clamp)
        k3 = (torch.expm1(logs) - logs).sum(BATCH_AXES) / ev.rows.tokens.clamp(min=1)
        scale = remembered(ev, "kl-adaptive.scale", 1.0)
        scale = torch.where(k3 > 2 * self.target, scale / self.factor, scale)
        scale = torch.where(k3 < self.target / 2, scale * self.factor, scale).clamp(self.floor, 1.0)
        ev.state["kl-adaptive.scale"] = scale
        return scale
