"""The parts of a method: its own, those added with `+`, and what follows from them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

from torch import Tensor

from vcpo_bench.methods.core.component import MethodComponent
from vcpo_bench.methods.core.errors import MethodError
from vcpo_bench.methods.core.interfaces import Admission, Aggregation, Baseline, Mask, Part, Regularizer, Step, Weight
from vcpo_bench.methods.parts.constant import Constant
from vcpo_bench.methods.parts.grpo import Grpo
from vcpo_bench.methods.parts.seq_mean_token_mean import SeqMeanTokenMean
from vcpo_bench.naming.plugins import plugin_digests

SINGLE_VALUED = ("baseline", "aggregation", "step")
"""Slots that one part fills."""


@dataclass(frozen=True, kw_only=True)
class PartsInForce(MethodComponent):
    """A method without its surrogate.

    `extras` holds the parts given with `+`. A baseline, aggregation or step rule replaces the method's own; masks,
    regularizers, weights and admissions are added to them. Order does not matter: extras are sorted, and parts equal
    to the method's defaults are dropped.
    """

    slot: ClassVar[str] = "method"
    extras: tuple[MethodComponent, ...] = field(default=())

    # -- what a subclass may define ----------------------------------------------------------------------------------

    def own_baseline(self) -> Baseline:
        """The baseline used unless one is added."""
        return Grpo()

    def own_aggregation(self) -> Aggregation:
        """The aggregation used unless one is added."""
        return SeqMeanTokenMean()

    def own_step(self) -> Step:
        """The step rule used unless one is added."""
        return Constant()

    def own_admissions(self) -> tuple[Admission, ...]:
        """Admissions of the method itself."""
        return ()

    def own_masks(self) -> tuple[Mask, ...]:
        """Masks of the method itself."""
        return ()

    def own_regularizers(self) -> tuple[Regularizer, ...]:
        """Regularizers of the method itself."""
        return ()

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
        own = {self.own_baseline(), self.own_aggregation(), self.own_step()}
        added = sorted((part for part in self.extras if part not in own), key=lambda part: part.text())
        object.__setattr__(self, "extras", tuple(added))

    def _added(self, kind: type[Any]) -> tuple[Any, ...]:
        return tuple(part for part in self.extras if isinstance(part, kind))

    @cached_property
    def admissions(self) -> tuple[Admission, ...]:
        """Admissions in force: those of single rows before those of groups."""
        return tuple(sorted((*self.own_admissions(), *self._added(Admission)), key=lambda part: part.whole_groups))

    @cached_property
    def baseline_part(self) -> Baseline:
        """The baseline in force."""
        return next(iter(self._added(Baseline)), None) or self.own_baseline()

    @cached_property
    def weights(self) -> tuple[Weight, ...]:
        """Weights added with `+`; their product multiplies the advantage."""
        return self._added(Weight)

    @cached_property
    def masks(self) -> tuple[Mask, ...]:
        """Masks in force."""
        return (*self.own_masks(), *self._added(Mask))

    @cached_property
    def regularizers(self) -> tuple[Regularizer, ...]:
        """Regularizers in force."""
        return (*self.own_regularizers(), *self._added(Regularizer))

    @cached_property
    def aggregation_part(self) -> Aggregation:
        """The aggregation in force."""
        return next(iter(self._added(Aggregation)), None) or self.own_aggregation()

    @cached_property
    def step_part(self) -> Step:
        """The step rule in force."""
        return next(iter(self._added(Step)), None) or self.own_step()

    @cached_property
    def _parts(self) -> tuple[MethodComponent, ...]:
        single = (self.baseline_part, self.aggregation_part, self.step_part)
        return (*self.admissions, *single, *self.weights, *self.masks, *self.regularizers)

    @property
    def version(self) -> int:
        """Its own revision, plus every later revision of a part in force."""
        return self.own_revision + sum(part.own_revision - 1 for part in self._parts)

    @property
    def plugins(self) -> str:
        """Digests of the plug-in files that it and its parts come from, joined with `+`; empty for what ships."""
        return plugin_digests(*(part.source for part in (self, *self._parts)))

    @property
    def needs(self) -> frozenset[str]:
        """Optional batch fields the method and its parts read; `state` when one keeps state."""
        return self.own_needs().union(*(part.needs for part in self._parts))

    @property
    def anchors(self) -> dict[str, str]:
        """What each ratio is relative to: `{"ratio": "behavior", "ess weights": "behavior"}`."""
        return dict(item for each in (self.own_anchors(), *(p.anchors for p in self._parts)) for item in each.items())

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
        return self.step_part.needs_series

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
        return replace(self, extras=(*others, self.step_part.with_series(values, rng_seed)))

    @property
    def combine(self) -> Callable[[tuple[float, float, float]], tuple[float, float]] | None:
        """For methods that act on the gradient: (<g,g>, <g,p>, <p,p>) to (a, b), g <- a g + b p; else None."""
        return self.step_part.combine if self.step_part.acts_on_gradient else None

    @property
    def measures_drift(self) -> frozenset[str]:
        """What the learner must measure: `parameter_distance` (it keeps past weights) and `update_norm`."""
        asked = self.needs & {"parameter_distance", "update_norm"}
        return asked | {"parameter_distance"} if self.step_part.compensates_delay else asked

    @property
    def compensate(self) -> Callable[[Tensor, Tensor], Tensor] | None:
        """For methods that correct the gradient for the drift of the weights, see `Step.compensate`; else None."""
        return self.step_part.compensate if self.step_part.compensates_delay else None
