"""A plug-in whose parts take the mean of whatever they are given, as a newcomer writes it."""

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor
from vcpo_bench.methods import Baseline, EvidenceView, RatioMethod, Step, Terms


@dataclass(frozen=True, kw_only=True)
class SelfNorm(RatioMethod):
    """The row weight over its mean."""

    name: ClassVar[str] = "self-norm"

    def terms(self, ev: EvidenceView) -> Terms:
        weight = ev.pair().row_log.exp().unsqueeze(-1)
        ev.state["self-norm.mean"] = weight.mean()
        return Terms(weight=weight / weight.mean())


@dataclass(frozen=True, kw_only=True)
class DriftStep(Step):
    """A step that shrinks with the mean log weight."""

    name: ClassVar[str] = "drift-step"

    def scale(self, ev: EvidenceView) -> Tensor:
        return 1 / (1 + 10 * ev.pair().row_log.abs().mean())


@dataclass(frozen=True, kw_only=True)
class OverallMean(Baseline):
    """The reward minus its mean."""

    name: ClassVar[str] = "overall-mean"

    def advantage(self, ev: EvidenceView) -> Tensor:
        return ev.reward - ev.reward.mean()
