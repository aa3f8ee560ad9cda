"""A policy that hardly explores."""

from typing import ClassVar

from vcpo_bench.analysis.monitoring.signal import Array, Role, Signal, Updates, column


class EntropyLow(Signal):
    """A policy that hardly explores."""

    name: ClassVar[str] = "entropy_low"
    summary: ClassVar[str] = "entropy of the policy is low: -entropy"
    role: ClassVar[Role] = "policy"
    stacks: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("entropy",)
    rank: ClassVar[int] = 14

    def formula(self, steps: Updates) -> Array:
        """`[S]` minus the column, nats per token."""
        return -column(steps, "entropy")
