"""A policy close to random."""

from typing import ClassVar

from vcpo_bench.analysis.monitoring.signal import Array, Role, Signal, Updates, column


class EntropyHigh(Signal):
    """A policy close to random."""

    name: ClassVar[str] = "entropy_high"
    summary: ClassVar[str] = "entropy of the policy is high"
    role: ClassVar[Role] = "policy"
    stacks: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("entropy",)
    rank: ClassVar[int] = 15

    def formula(self, steps: Updates) -> Array:
        """`[S]` the column, nats per token."""
        return column(steps, "entropy")
