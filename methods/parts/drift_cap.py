"""A step held below two bounds: on the drift within the lag, and on the drift of the whole run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.drift import over_rows, update_norm
from vcpo_bench.methods.core.interfaces import Step
from vcpo_bench.methods.core.reach import Scope
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import integer, number


@dataclass(frozen=True, kw_only=True)
class DriftCap(Step):
    """scale = min(1, local / (S u), horizon / (T u)): eta < min(R_batch/(S G), R_crit/(T G)) (2607.01083).

    u = eta G is the norm of an update at the full rate, measured at the last one; S is the batch's largest lag, at
    least 1, and T the number of updates of the run. The first bound keeps the weights within `local` of those that
    sampled, the second the run within `horizon` of its start, should it move straight on.
    """

    name: ClassVar[str] = "drift-cap"
    summary: ClassVar[str] = "step bounded so that lag times update and run length times update stay small"
    reference: ClassVar[str] = "Staleness-learning rate scaling laws 2607.01083"
    year: ClassVar[int] = 2026
    sees: ClassVar[Scope] = Scope.BATCH
    reads: ClassVar[frozenset[str]] = frozenset({"version"})
    formula: ClassVar[str] = "scale = min(1, local / (S u), horizon / (T u)), u = norm of an update at full rate"
    differences: ClassVar[tuple[str, ...]] = (
        "the paper fixes the rate before the run, from S eta = 1.6e-6 and T eta = 3.2e-5 on 1B and 3B models; here the "
        "radii are distances of weights, and the norm of an update is measured",
    )
    host: ClassVar[str] = "reinforce"
    local: float = number(1.0, minimum=0)
    horizon: float = number(40.0, minimum=0)
    updates: int = integer(400, minimum=1)

    @property
    def needs(self) -> frozenset[str]:
        """The norm of the last update."""
        return frozenset({"update_norm"})

    def scale(self, ev: EvidenceView) -> Tensor:
        """Leading shape, in [0, 1]; 1 until there has been an update."""
        lag = over_rows(ev, ev.batch.lag().clamp(min=0), "max").clamp(min=1)
        allowed = torch.minimum(self.local / lag, torch.full_like(lag, self.horizon / self.updates))
        step = update_norm(ev)
        return torch.where(step > 0, allowed / step, math.inf).clamp(max=1.0)
