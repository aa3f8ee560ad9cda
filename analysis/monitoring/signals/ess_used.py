"""ESS of the weights the method applied."""

from typing import ClassVar

import numpy as np

from vcpo_bench.analysis.monitoring.signal import Array, Role, Signal, Updates, column


class EssUsed(Signal):
    """ESS of the weights the method applied."""

    name: ClassVar[str] = "ess_used"
    summary: ClassVar[str] = "ESS of the weights the method applied is low: -log(ess_ratio_used)"
    role: ClassVar[Role] = "weights"
    stacks: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("ess_ratio_used",)
    rank: ClassVar[int] = 2

    def formula(self, steps: Updates) -> Array:
        """`[S]` -log of the ESS ratio."""
        return -np.log(column(steps, "ess_ratio_used"))
