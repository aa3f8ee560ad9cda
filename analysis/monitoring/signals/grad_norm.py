"""The gradient norm."""

from typing import ClassVar

import numpy as np

from vcpo_bench.analysis.monitoring.signal import Array, Role, Signal, Updates, column


class GradNorm(Signal):
    """The gradient norm."""

    name: ClassVar[str] = "grad_norm"
    summary: ClassVar[str] = "log of the gradient norm before clipping"
    role: ClassVar[Role] = "gradient"
    stacks: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("grad_norm",)
    rank: ClassVar[int] = 9

    def formula(self, steps: Updates) -> Array:
        """`[S]` its logarithm."""
        return np.log(column(steps, "grad_norm"))
