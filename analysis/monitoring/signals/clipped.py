"""How much the method clips."""

from typing import ClassVar

from vcpo_bench.analysis.monitoring.signal import Array, Role, Signal, Updates, column


class Clipped(Signal):
    """How much the method clips."""

    name: ClassVar[str] = "clipped"
    summary: ClassVar[str] = "share of tokens clipped or capped"
    role: ClassVar[Role] = "weights"
    stacks: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("share_clipped",)
    rank: ClassVar[int] = 8

    def formula(self, steps: Updates) -> Array:
        """`[S]` the column, 0 to 1."""
        return column(steps, "share_clipped")
