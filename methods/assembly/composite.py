"""What a method is made of: its own parts, those added with `+`, and what follows from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Self

from vcpo_bench.lazy_torch import Tensor
from vcpo_bench.methods.assembly.parts import Parts
from vcpo_bench.methods.core.component import MethodComponent
from vcpo_bench.methods.core.errors import MethodError
from vcpo_bench.methods.core.interfaces import Part, Weight
from vcpo_bench.naming.plugins import plugin_digests

SINGLE_VALUED = ("baseline", "aggregation", "step")
"""Slots that one part fills."""


@dataclass(frozen=True, kw_only=True)
class Composite(MethodComponent):
    """A method without its surrogate.

    `extras` holds the parts given with `+`. A baseline, aggregation or step rule replaces the method's own; masks,
    regularizers, weights and admissions are added to them. Order does not matter: extras are sorted, and parts equal
    to the method's defaults are dropped.
    """

    slot: ClassVar[str] = "method"
    extras: tuple[MethodComponent, ...] = field(default=())

    # -- what a subclass may define ----------------------------------------------------------------------------------

    @property
    def defaults(self) -> Parts:
        """The parts it brings; a baseline, aggregation or step rule gives way to one that is added."""
        return Parts()

    def own_needs(self) -> frozenset[str]:
        """Optional fields the surrogate itself reads."""
        return frozenset()

    def own_anchors(self) -> dict[str, str]:
        """What the surrogate's own ratios are relative to."""
        return {}

    # -- parts -------------------------------------------------------------------------------------------------------

    def __post_init__(self) -> None:
        super().__post_init__()
        seen: dict[str, str] = {}
        for part in self.extras:
            if part.slot in SINGLE_VALUED and part.slot in seen:
                first = seen[part.slot]
                raise MethodError(f"{part.name} and {first} both set the {part.slot} of {self.name}; keep one")
            seen[part.slot] = part.name
            if not isinstance(part, (Part, Weight)):
                raise MethodError(f"{part.name} cannot be added with +: it is a method of its own, not a part")
        brought = self.defaults
        own = {brought.baseline, brought.aggregation, brought.step}
        added = sorted((part for part in self.extras if part not in own), key=lambda part: part.text())
        object.__setattr__(self, "extras", tuple(added))

    @cached_property
    def parts(self) -> Parts:
        """The parts in force."""
        return self.defaults.with_added(self.extras)

    @property
    def version(self) -> int:
        """Its own revision, plus every later revision of a part in force."""
        return self.own_revision + sum(part.own_revision - 1 for part in self.parts)

    @property
    def plugins(self) -> str:
        """Digests of the plug-in files that it and its parts come from, joined with `+`; empty for what ships."""
        return plugin_digests(*(part.source for part in (self, *self.parts)))

    @cached_property
    def all_ship(self) -> bool:
        """Whether it and its parts are all ours, which take leading axes and return the shapes they should."""
        return all(part.ships() for part in (self, *self.parts))

    @property
    def needs(self) -> frozenset[str]:
        """Optional batch fields the method and its parts read; `state` when one keeps state."""
        return frozenset(self.own_needs()).union(*(part.needs for part in self.parts))

    @property
    def anchors(self) -> dict[str, str]:
        """What each ratio is relative to: `{"ratio": "behavior", "ess weights": "behavior"}`."""
        return dict(item for each in (self.own_anchors(), *(p.anchors for p in self.parts)) for item in each.items())

    def text(self) -> str:
        """Canonical spelling, parts included: expressions with the same meaning have the same."""
        return "+".join([super().text(), *(part.text() for part in self.extras)])

    @cached_property
    def canonical(self) -> str:
        """The same, worked out once."""
        return self.text()

    @property
    def needs_series(self) -> str | None:
        """Expression of the cell whose step scales this method borrows, or None."""
        return self.parts.step.needs_series

    def with_series(self, values: Sequence[float], rng_seed: int) -> Self:
        """This method carrying the step scales of the cell it borrows from.

        Args:
            values: One scale per update of that cell, in order.
            rng_seed: Seed of their order, for `lr-shuffled`.

        Raises:
            MethodError: It borrows none.
        """
        if self.needs_series is None:
            raise MethodError(f"{self.canonical} borrows no step scales")
        others = tuple(part for part in self.extras if part.slot != "step")
        return replace(self, extras=(*others, self.parts.step.with_series(values, rng_seed)))

    @property
    def combine(self) -> Callable[[tuple[float, float, float]], tuple[float, float]] | None:
        """For methods that act on the gradient: (<g,g>, <g,p>, <p,p>) to (a, b), g <- a g + b p; else None."""
        return self.parts.step.combine if self.parts.step.acts_on_gradient else None

    @property
    def measures_drift(self) -> frozenset[str]:
        """What the learner must measure: `parameter_distance` (it keeps past weights) and `update_norm`."""
        asked = self.needs & {"parameter_distance", "update_norm"}
        return asked | {"parameter_distance"} if self.parts.step.compensates_delay else asked

    @property
    def compensate(self) -> Callable[[Tensor, Tensor], Tensor] | None:
        """For methods that correct the gradient for the drift of the weights, see `Step.compensate`; else None."""
        return self.parts.step.compensate if self.parts.step.compensates_delay else None
