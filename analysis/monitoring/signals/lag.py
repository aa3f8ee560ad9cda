"""The lag of the data."""

from typing import ClassVar

from vcpo_bench.analysis.monitoring.signal import Array, Role, Signal, Updates, column


class Lag(Signal):
    """The lag of the data."""

    name: ClassVar[str] = "lag"
    summary: ClassVar[str] = "largest lag of the consumed trajectories"
    role: ClassVar[Role] = "circumstance"
    stacks: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("lag_max",)
    rank: ClassVar[int] = 23

    def formula(self, steps: Updates) -> Array:
        """`[S]` the column, updates."""
        return column(steps, "lag_max")
