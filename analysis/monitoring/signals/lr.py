"""The base learning rate."""

from typing import ClassVar

import numpy as np

from vcpo_bench.analysis.monitoring.signal import Array, Role, Signal, Updates, column


class LearningRate(Signal):
    """The base learning rate."""

    name: ClassVar[str] = "lr"
    summary: ClassVar[str] = "log of the base learning rate: lr / step_scale"
    role: ClassVar[Role] = "circumstance"
    stacks: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("lr", "step_scale")
    rank: ClassVar[int] = 24

    def formula(self, steps: Updates) -> Array:
        """`[S]` its logarithm, the step scale taken out; rounded, because what is recorded in single precision is.

        Equal rates must tie, whatever step scale was taken out of them.
        """
        logarithm: Array = np.log(column(steps, "lr") / column(steps, "step_scale"))
        return logarithm.round(5)
