"""The variance of the training reward, an early warning of tipping points."""

from typing import ClassVar

from vcpo_bench.analysis.monitoring.signal import Array, Role, Signal, Updates, column
from vcpo_bench.analysis.monitoring.trailing import REWARD_WINDOW, variance


class RewardVariance(Signal):
    """The variance of the training reward, an early warning of tipping points."""

    name: ClassVar[str] = "reward_variance"
    summary: ClassVar[str] = f"variance of the training reward over {REWARD_WINDOW} updates"
    role: ClassVar[Role] = "reward"
    stacks: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("sampled_reward",)
    memory: ClassVar[int | None] = REWARD_WINDOW
    rank: ClassVar[int] = 18

    def formula(self, steps: Updates) -> Array:
        """`[S]` the variance over the window."""
        return variance(column(steps, "sampled_reward"))
