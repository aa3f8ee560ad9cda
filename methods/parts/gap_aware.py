"""A step divided by the distance that the weights have moved since the data were sampled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.drift import over_rows, remembered, update_norm
from vcpo_bench.methods.core.interfaces import Step
from vcpo_bench.methods.core.reach import Scope
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class GapAware(Step):
    """scale = 1 / (1 + d / c), d = ||theta_now - theta_sampled||, c the mean norm of an update (GA 1909.10802).

    The gap d / c is the lag counted in average steps of the weights: k when they move straight on for k updates,
    sqrt(k) when they wander, less when steps are small. c is a running mean (weight `rate`) of the changes applied.
    """

    name: ClassVar[str] = "gap-aware"
    summary: ClassVar[str] = "step divided by 1 + the distance from the sampling weights, in mean updates"
    reference: ClassVar[str] = "Gap-aware mitigation 1909.10802"
    year: ClassVar[int] = 2019
    sees: ClassVar[Scope] = Scope.BATCH
    formula: ClassVar[str] = "scale = 1 / (1 + ||theta_now - theta_sampled|| / c), c = mean ||update||"
    differences: ClassVar[tuple[str, ...]] = (
        "the paper also divides parameter by parameter, each by its own gap; here one number for all",
    )
    host: ClassVar[str] = "reinforce"
    of: str = choice("mean", "max")
    rate: float = number(0.1, minimum=1e-6, maximum=1)

    @property
    def needs(self) -> frozenset[str]:
        """The distances, and the mean update and last scale as state."""
        return frozenset({"parameter_distance", "update_norm", "state"})

    def scale(self, ev: EvidenceView) -> Tensor:
        """Leading shape, in (0, 1]; 1 until there has been an update."""
        applied = update_norm(ev) * remembered(ev, "gap-aware.scale", 1.0)
        before = remembered(ev, "gap-aware.step", 0.0)
        step = torch.where(before > 0, torch.lerp(before, applied, self.rate), applied)
        gap = over_rows(ev, ev.row_field("parameter_distance"), self.of)
        scale = torch.where(step > 0, step / (step + gap), 1.0)
        ev.state["gap-aware.step"], ev.state["gap-aware.scale"] = step, scale
        return scale
