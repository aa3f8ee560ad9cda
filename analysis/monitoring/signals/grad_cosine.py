"""How much consecutive gradients align."""

from typing import ClassVar

from vcpo_bench.analysis.monitoring.signal import Array, Role, Signal, Updates, column


class GradCosine(Signal):
    """How much consecutive gradients align."""

    name: ClassVar[str] = "grad_cosine"
    summary: ClassVar[str] = "cosine of consecutive gradients is high (GAC)"
    role: ClassVar[Role] = "gradient"
    stacks: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("grad_cosine",)
    rank: ClassVar[int] = 13

    def formula(self, steps: Updates) -> Array:
        """`[S]` the column, -1 to 1."""
        return column(steps, "grad_cosine")
