"""The gradient norm of the output head."""

from typing import ClassVar

import numpy as np

from vcpo_bench.analysis.monitoring.signal import Array, Role, Signal, Updates, column


class HeadNorm(Signal):
    """The gradient norm of the output head."""

    name: ClassVar[str] = "head_norm"
    summary: ClassVar[str] = "log of the output head's gradient norm"
    role: ClassVar[Role] = "gradient"
    stacks: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("head_grad_norm",)
    rank: ClassVar[int] = 11

    def formula(self, steps: Updates) -> Array:
        """`[S]` its logarithm."""
        return np.log(column(steps, "head_grad_norm"))
