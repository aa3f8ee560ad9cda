"""The lower tail of the sequence log-weights."""

from typing import ClassVar

from vcpo_bench.analysis.monitoring.signal import Array, Role, Signal, Updates, column


class LogWeightLow(Signal):
    """The lower tail of the sequence log-weights."""

    name: ClassVar[str] = "log_weight_low"
    summary: ClassVar[str] = "minus the 5% quantile of the sequence log-weights: what the policy gives up"
    role: ClassVar[Role] = "weights"
    stacks: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("log_weight_q05",)

    def formula(self, steps: Updates) -> Array:
        """`[S]` the quantile with its sign turned, nats."""
        return -column(steps, "log_weight_q05")
