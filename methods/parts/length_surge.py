"""A step that is halved again and again after responses have become much longer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.drift import over_rows, remembered
from vcpo_bench.methods.core.interfaces import Step
from vcpo_bench.methods.core.reach import Scope
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import integer, number


@dataclass(frozen=True, kw_only=True)
class LengthSurge(Step):
    """scale = max(floor, 2^-floor((t - t_s) / (stretch t_s))), t_s the update at which length surges (2602.01826).

    The surge is the first update, after the `window` that sets the baseline, whose mean response length exceeds
    `factor` times the mean of that window. Before it the scale is 1.
    """

    name: ClassVar[str] = "length-surge"
    summary: ClassVar[str] = "step halved at intervals once responses are three times as long as at first"
    reference: ClassVar[str] = "Training-inference mismatch is an optimization problem 2602.01826"
    year: ClassVar[int] = 2026
    sees: ClassVar[Scope] = Scope.BATCH
    formula: ClassVar[str] = (
        "scale = max(floor, 2^-floor((t - t_s)/(stretch t_s))), t_s: mean length > factor x baseline"
    )
    differences: ClassVar[tuple[str, ...]] = (
        "stretch: 1.8, from a reproduction's surge at update 110 and interval of 198; its trainer also has a warm-up",
    )
    host: ClassVar[str] = "reinforce"
    factor: float = number(3.0, minimum=1)
    window: int = integer(50, minimum=1)
    stretch: float = number(1.8, minimum=1e-3)
    floor: float = number(0.1, minimum=0, maximum=1)

    @property
    def needs(self) -> frozenset[str]:
        """The baseline, the number of updates seen and the surge are state."""
        return frozenset({"state"})

    def scale(self, ev: EvidenceView) -> Tensor:
        """Leading shape, in [floor, 1]."""
        length = over_rows(ev, ev.rows.lengths, "mean")
        seen = remembered(ev, "length-surge.seen", 0.0)
        baseline = remembered(ev, "length-surge.baseline", 0.0)
        surge = remembered(ev, "length-surge.at", 0.0)  # 0: not yet
        early = seen < self.window
        surge = torch.where((surge == 0) & ~early & (length > self.factor * baseline), seen, surge)
        ev.state["length-surge.baseline"] = torch.where(early, baseline + (length - baseline) / (seen + 1), baseline)
        ev.state["length-surge.seen"], ev.state["length-surge.at"] = seen + 1, surge
        halvings = torch.floor((seen - surge) / (self.stretch * surge).clamp(min=1))
        return torch.where(surge > 0, (0.5**halvings).clamp(min=self.floor), 1.0)
