"""ESS of the sequence weights."""

from typing import ClassVar

import numpy as np

from vcpo_bench.analysis.monitoring.signal import Array, Role, Signal, Updates, column


class Ess(Signal):
    """ESS of the sequence weights."""

    name: ClassVar[str] = "ess"
    summary: ClassVar[str] = "Kish ESS of the raw sequence weights is low: -log(ess_ratio)"
    role: ClassVar[Role] = "weights"
    stacks: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("ess_ratio",)
    rank: ClassVar[int] = 1

    def formula(self, steps: Updates) -> Array:
        """`[S]` -log of the ESS ratio."""
        return -np.log(column(steps, "ess_ratio"))
