"""A clock: what any prediction must beat."""

from typing import ClassVar

from vcpo_bench.analysis.monitoring.signal import Array, Role, Signal, Updates, column


class Step(Signal):
    """A clock: what any prediction must beat."""

    name: ClassVar[str] = "step"
    summary: ClassVar[str] = "the update's number: a clock"
    role: ClassVar[Role] = "circumstance"
    stacks: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("step",)
    rank: ClassVar[int] = 22

    def formula(self, steps: Updates) -> Array:
        """`[S]` the number of the update."""
        return column(steps, "step")
