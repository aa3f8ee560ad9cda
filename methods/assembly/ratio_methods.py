"""Base classes of methods with an importance ratio."""

from dataclasses import dataclass

from vcpo_bench.methods.assembly.method import Method
from vcpo_bench.methods.core.batch import fields_of
from vcpo_bench.methods.core.interfaces import Weight
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class RatioMethod(Method):
    """A method with an importance ratio current/anchor whose logarithm is clamped."""

    anchor: str = choice("behavior", "proximal")
    clamp: float = number(20.0, minimum=0)

    def own_needs(self) -> frozenset[str]:
        """The proximal policy, when it is the anchor."""
        return fields_of(self.anchor)

    def own_anchors(self) -> dict[str, str]:
        """The ratio's denominator."""
        return {"ratio": self.anchor}


@dataclass(frozen=True, kw_only=True)
class WeightMethod(RatioMethod, Weight):
    """A detached weight u: c = A u. It can also be added to another method with `+`, and multiplies there.

    `of=proximal` makes it proximal/behavior, the engine and staleness ratio of decoupled methods.
    """

    of: str = choice("current", "proximal")

    def terms(self, ev: EvidenceView) -> Terms:
        """C = A u."""
        return Terms(weight=self.weight(ev), capped=self.capped(ev))

    def own_needs(self) -> frozenset[str]:
        """The proximal policy, when it is in the ratio."""
        return fields_of(self.anchor, self.of)

    def own_anchors(self) -> dict[str, str]:
        """The ratio, numerator first when it is not the current policy."""
        return {f"{self.name} weight": self.anchor if self.of == "current" else f"{self.of}/{self.anchor}"}
