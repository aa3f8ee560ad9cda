"""Whether the autocorrelation of the training reward grows."""

from typing import ClassVar

from vcpo_bench.analysis.monitoring.signal import Array, Role, Signal, Updates, column
from vcpo_bench.analysis.monitoring.trailing import HISTORY, REWARD_WINDOW, autocorrelation, kendall_trend


class AutocorrelationTrend(Signal):
    """Whether the autocorrelation of the training reward grows."""

    name: ClassVar[str] = "autocorrelation_trend"
    summary: ClassVar[str] = f"Kendall's tau of the reward's autocorrelation over {HISTORY} updates"
    role: ClassVar[Role] = "reward"
    stacks: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("sampled_reward",)
    memory: ClassVar[int | None] = HISTORY + REWARD_WINDOW + 1
    rank: ClassVar[int] = 21

    def formula(self, steps: Updates) -> Array:
        """`[S]` the trend of the autocorrelation, -1 to 1."""
        return kendall_trend(autocorrelation(column(steps, "sampled_reward")))
