"""The base class of masks that look at one importance ratio."""

from dataclasses import dataclass

from vcpo_bench.methods.core.batch import fields_of
from vcpo_bench.methods.core.interfaces import Mask
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class RatioMask(Mask):
    """A mask that looks at one ratio; `of` and `anchor` name its numerator and denominator.

    Logarithms are clamped to `+-clamp`, those of products and means as a whole.
    """

    anchor: str = choice("behavior", "proximal")
    of: str = choice("current", "proximal")
    clamp: float = number(20.0, minimum=0)

    @property
    def needs(self) -> frozenset[str]:
        """The proximal policy, when it is in the ratio."""
        return fields_of(self.anchor, self.of)

    @property
    def anchors(self) -> dict[str, str]:
        """The ratio the mask looks at."""
        return {f"{self.name} mask": self.anchor if self.of == "current" else f"{self.of}/{self.anchor}"}
