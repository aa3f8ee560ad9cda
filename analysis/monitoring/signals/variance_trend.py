"""Whether the variance of the training reward grows."""

from typing import ClassVar

from vcpo_bench.analysis.monitoring.signal import Array, Role, Signal, Updates, column
from vcpo_bench.analysis.monitoring.trailing import HISTORY, REWARD_WINDOW, kendall_trend, variance


class VarianceTrend(Signal):
    """Whether the variance of the training reward grows."""

    name: ClassVar[str] = "variance_trend"
    summary: ClassVar[str] = f"Kendall's tau of the reward's variance over {HISTORY} updates"
    role: ClassVar[Role] = "reward"
    stacks: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("sampled_reward",)
    memory: ClassVar[int | None] = HISTORY + REWARD_WINDOW
    rank: ClassVar[int] = 20

    def formula(self, steps: Updates) -> Array:
        """`[S]` the trend of the variance, -1 to 1."""
        return kendall_trend(variance(column(steps, "sampled_reward")))
