"""A low training reward."""

from typing import ClassVar

from vcpo_bench.analysis.monitoring.signal import Array, Role, Signal, Updates, column


class RewardLow(Signal):
    """A low training reward."""

    name: ClassVar[str] = "reward_low"
    summary: ClassVar[str] = "training reward is low: -sampled_reward"
    role: ClassVar[Role] = "reward"
    stacks: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("sampled_reward",)
    rank: ClassVar[int] = 16

    def formula(self, steps: Updates) -> Array:
        """`[S]` minus the column."""
        return -column(steps, "sampled_reward")
