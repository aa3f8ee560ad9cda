"""How surprised the policy is by what it is told to avoid."""

from typing import ClassVar

from vcpo_bench.analysis.monitoring.signal import Array, Role, Signal, Updates, column


class NegativeSurprisal(Signal):
    """How surprised the policy is by what it is told to avoid.

    Pushing down what the policy hardly says any more moves probability anywhere, and nothing bounds it.
    """

    name: ClassVar[str] = "negative_surprisal"
    summary: ClassVar[str] = "surprisal of tokens of responses below their group's mean reward"
    role: ClassVar[Role] = "policy"
    stacks: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("negative_surprisal",)

    def formula(self, steps: Updates) -> Array:
        """`[S]` the column, nats per token."""
        return column(steps, "negative_surprisal")
