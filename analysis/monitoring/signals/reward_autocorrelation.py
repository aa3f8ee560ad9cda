"""The autocorrelation of the training reward, an early warning of tipping points."""

from typing import ClassVar

from vcpo_bench.analysis.monitoring.signal import Array, Role, Signal, Updates, column
from vcpo_bench.analysis.monitoring.trailing import REWARD_WINDOW, autocorrelation


class RewardAutocorrelation(Signal):
    """The autocorrelation of the training reward, an early warning of tipping points."""

    name: ClassVar[str] = "reward_autocorrelation"
    summary: ClassVar[str] = f"lag-1 autocorrelation of the training reward over {REWARD_WINDOW} updates"
    role: ClassVar[Role] = "reward"
    stacks: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("sampled_reward",)
    memory: ClassVar[int | None] = REWARD_WINDOW + 1
    rank: ClassVar[int] = 19

    def formula(self, steps: Updates) -> Array:
        """`[S]` the autocorrelation over the window."""
        return autocorrelation(column(steps, "sampled_reward"))
