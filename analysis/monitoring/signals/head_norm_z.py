"""The gradient norm of the output head against its own past."""

from typing import ClassVar

import numpy as np

from vcpo_bench.analysis.monitoring.signal import Array, Role, Signal, Updates, column
from vcpo_bench.analysis.monitoring.trailing import HISTORY, z_score


class HeadNormZ(Signal):
    """The gradient norm of the output head against its own past."""

    name: ClassVar[str] = "head_norm_z"
    summary: ClassVar[str] = f"log head gradient norm against the {HISTORY} updates before, in standard deviations"
    role: ClassVar[Role] = "gradient"
    stacks: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("head_grad_norm",)
    memory: ClassVar[int | None] = HISTORY + 1
    rank: ClassVar[int] = 12

    def formula(self, steps: Updates) -> Array:
        """`[S]` the z-score of its logarithm."""
        return z_score(np.log(column(steps, "head_grad_norm")))
