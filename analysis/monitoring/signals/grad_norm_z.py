"""The gradient norm against its own past."""

from typing import ClassVar

import numpy as np

from vcpo_bench.analysis.monitoring.signal import Array, Role, Signal, Updates, column
from vcpo_bench.analysis.monitoring.trailing import HISTORY, z_score


class GradNormZ(Signal):
    """The gradient norm against its own past."""

    name: ClassVar[str] = "grad_norm_z"
    summary: ClassVar[str] = f"log gradient norm against the {HISTORY} updates before, in standard deviations"
    role: ClassVar[Role] = "gradient"
    stacks: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("grad_norm",)
    memory: ClassVar[int | None] = HISTORY + 1
    rank: ClassVar[int] = 10

    def formula(self, steps: Updates) -> Array:
        """`[S]` the z-score of its logarithm."""
        return z_score(np.log(column(steps, "grad_norm")))
