"""How far truncated weights are from one."""

from typing import ClassVar

import numpy as np

from vcpo_bench.analysis.monitoring.signal import Array, Role, Signal, Updates, column

CAP = 8.0
"""Cap of `|TIS - 1|`: the comparison's sequence truncation."""
_LEVELS = {"05": 0.05, "25": 0.25, "50": 0.5, "75": 0.75, "95": 0.95}


class Tis(Signal):
    """How far truncated weights are from one."""

    name: ClassVar[str] = "tis"
    summary: ClassVar[str] = "mean |min(w, 8) - 1| from the recorded quantiles of the weights"
    role: ClassVar[Role] = "weights"
    stacks: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("log_weight_max", *(f"log_weight_q{q}" for q in _LEVELS))
    rank: ClassVar[int] = 7

    def formula(self, steps: Updates) -> Array:
        """`[S]` the mean by the trapezoidal rule over the quantiles, the smallest taken down to 0."""
        heights = [np.abs(np.minimum(np.exp(column(steps, f"log_weight_q{q}")), CAP) - 1) for q in _LEVELS]
        top = np.abs(np.minimum(np.exp(column(steps, "log_weight_max")), CAP) - 1)
        return np.asarray(np.trapezoid([heights[0], *heights, top], [0.0, *_LEVELS.values(), 1.0], axis=0))
