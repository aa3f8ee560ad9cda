"""The training reward below its best."""

from typing import ClassVar

import numpy as np

from vcpo_bench.analysis.monitoring.signal import Array, Role, Signal, Updates, column
from vcpo_bench.analysis.monitoring.trailing import REWARD_WINDOW
from vcpo_bench.analysis.series import trailing_mean


class RewardDrop(Signal):
    """The training reward below its best."""

    name: ClassVar[str] = "reward_drop"
    summary: ClassVar[str] = (
        f"best trailing mean ({REWARD_WINDOW}) of the training reward so far, minus the present one"
    )
    role: ClassVar[Role] = "reward"
    stacks: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("sampled_reward",)
    memory: ClassVar[int | None] = None
    rank: ClassVar[int] = 17

    def formula(self, steps: Updates) -> Array:
        """`[S]` best trailing mean so far minus the present one."""
        mean = trailing_mean(column(steps, "sampled_reward"), REWARD_WINDOW)
        return np.asarray(np.fmax.accumulate(mean, axis=-1) - mean)
