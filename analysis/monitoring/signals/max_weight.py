"""The largest sequence weight."""

from typing import ClassVar

from vcpo_bench.analysis.monitoring.signal import Array, Role, Signal, Updates, column


class MaxWeight(Signal):
    """The largest sequence weight."""

    name: ClassVar[str] = "max_weight"
    summary: ClassVar[str] = "largest sequence log-weight"
    role: ClassVar[Role] = "weights"
    stacks: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("log_weight_max",)
    rank: ClassVar[int] = 6

    def formula(self, steps: Updates) -> Array:
        """`[S]` the column, nats."""
        return column(steps, "log_weight_max")
