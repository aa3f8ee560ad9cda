"""KL penalties, in the loss or in the reward."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.batch import fields_of
from vcpo_bench.methods.core.interfaces import Regularizer
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class Kl(Regularizer):
    """k = -beta d/dlogp of an estimate of the KL divergence to `anchor` (Schulman, 'Approximating KL divergence').

    With l = log pi - log pi_anchor: k1 = l, k2 = l^2/2, k3 = e^-l - 1 + l, abs = |l|; gradients 1, l, 1 - e^-l,
    sign l. `k1+` and `k3+` keep the value and take the gradient of k2, as verl's suffix does: spelled
    `kind=k2` here, since only the gradient acts. `clamp` bounds l inside the estimate and `limit` the
    estimate itself; beyond either its gradient is 0. `weight=proximal` or `behavior` multiplies the estimate by that
    ratio inside the graph (unbiased KL, DeepSeek-V3.2), which keeps its own gradient until `clamp` holds it, too;
    for k3 the two add up to r l. `current` multiplies by 1 with the gradient of a ratio (NeMo-RL), and `held-...` by
    the detached ratio. `kind=forward` is -l, the KL from the anchor's samples. `into=advantage`
    takes the value, detached, from each token's advantage instead of adding to the loss (KL in the reward).
    """

    name: ClassVar[str] = "kl"
    summary: ClassVar[str] = "k3 penalty to the behavior policy, added to the loss"
    reference: ClassVar[str] = "Schulman 2020; GRPO 2402.03300; DeepSeek-V3.2 2512.02556"
    year: ClassVar[int] = 2020
    formula: ClassVar[str] = "k = -beta (1 - e^-l) for k3, -beta l for k2, -beta for k1"
    differences: ClassVar[tuple[str, ...]] = (
        "verl clamps l to +-20 and the value of k3 to +-10 (limit=10); slime clamps only low_var_kl's value",
    )
    kind: str = choice("k3", "k2", "k1", "abs", "forward")
    beta: float = number(0.01, minimum=0)
    anchor: str = choice("behavior", "proximal", "reference")
    clamp: float = number(20.0, minimum=0)
    limit: float = number(math.inf, minimum=0)
    weight: str = choice("none", "proximal", "behavior", "current", "held-proximal", "held-behavior")
    into: str = choice("loss", "advantage")

    @property
    def needs(self) -> frozenset[str]:
        """The anchor's and the weight's log-probabilities."""
        return fields_of(self.anchor, self.weight.removeprefix("held-"))

    @property
    def anchors(self) -> dict[str, str]:
        """What the penalty pulls toward."""
        return {"kl": self.anchor}

    @property
    def own_revision(self) -> int:
        """One more for a ratio inside the graph, whose gradient cancelled in float32 and was lost beyond the clamp.

        And for `limit` or a ratio in the reward: both were ignored there.
        """
        inside = self.weight in ("proximal", "behavior", "current")
        ignored = self.into == "advantage" and (math.isfinite(self.limit) or self.weight not in ("none", "current"))
        return 1 + inside + ignored

    def addend(self, ev: EvidenceView) -> Tensor | None:
        """`[..., P, G, T]`."""
        if self.into == "advantage":
            return None
        logs = ev.log_ratio("current", self.anchor, self.clamp)
        value, slope = self._estimate(logs)
        held = ev.pair("current", self.anchor).beyond(self.clamp)
        if held is not None:
            slope = slope.masked_fill(held, 0.0)
        if self.weight != "none":
            value, slope = self._weighted(ev, logs, value, slope, held)
        if math.isfinite(self.limit):
            slope = torch.where(value.abs() > self.limit, 0.0, slope)
        return slope * -self.beta

    def penalty(self, ev: EvidenceView) -> Tensor | None:
        """`[..., P, G, T]` what is subtracted from the advantage, for `into=advantage`."""
        if self.into == "loss":
            return None
        value, _ = self._estimate(ev.log_ratio("current", self.anchor, self.clamp))
        policy = self.weight.removeprefix("held-")
        if policy not in ("none", "current"):
            value = value * ev.ratio("current", policy, self.clamp)
        return self.beta * value.clamp(-self.limit, self.limit)

    def _weighted(
        self, ev: EvidenceView, logs: Tensor, value: Tensor, slope: Tensor, held: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """The estimate k(l) times a ratio r: r k, and its derivative r (k' + k), where the clamp does not hold r."""
        policy = self.weight.removeprefix("held-")
        ratio = torch.ones_like(value) if policy == "current" else ev.ratio("current", policy, self.clamp)
        if self.weight.startswith("held-"):
            return ratio * value, ratio * slope
        both = slope + value
        if self.kind == "k3":  # k' + k is l: the exponentials, which differ by far more than l, drop out
            both = logs if held is None else torch.where(held, value, logs)
        stuck = None if policy == "current" else ev.pair("current", policy).beyond(self.clamp)
        return ratio * value, ratio * (both if stuck is None else torch.where(stuck, slope, both))

    def _estimate(self, logs: Tensor) -> tuple[Tensor, Tensor]:
        """Value and derivative in the log-probability."""
        if self.kind == "k1":
            return logs, torch.ones_like(logs)
        if self.kind == "k2":
            return logs * logs / 2, logs
        if self.kind == "abs":
            return logs.abs(), logs.sign()
        if self.kind == "forward":
            return -logs, -torch.ones_like(logs)
        inverse = torch.exp(-logs)
        return inverse - 1 + logs, 1 - inverse
