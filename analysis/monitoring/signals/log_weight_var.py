"""The spread of the sequence log-weights."""

from typing import ClassVar

from vcpo_bench.analysis.monitoring.signal import Array, Role, Signal, Updates, column


class LogWeightVariance(Signal):
    """The spread of the sequence log-weights."""

    name: ClassVar[str] = "log_weight_var"
    summary: ClassVar[str] = "variance of the sequence log-weights"
    role: ClassVar[Role] = "weights"
    stacks: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("log_weight_var",)

    def formula(self, steps: Updates) -> Array:
        """`[S]` the column, nats squared."""
        return column(steps, "log_weight_var")
