"""Both tails of the sequence log-weights."""

from typing import ClassVar

from vcpo_bench.analysis.monitoring.signal import Array, Role, Signal, Updates, column


class LogWeightTails(Signal):
    """Both tails of the sequence log-weights."""

    name: ClassVar[str] = "log_weight_tails"
    summary: ClassVar[str] = "95% minus 5% quantile of the sequence log-weights: both tails"
    role: ClassVar[Role] = "weights"
    stacks: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("log_weight_q05", "log_weight_q95")

    def formula(self, steps: Updates) -> Array:
        """`[S]` the distance of the quantiles, nats."""
        return column(steps, "log_weight_q95") - column(steps, "log_weight_q05")
