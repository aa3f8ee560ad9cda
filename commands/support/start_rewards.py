"""What the start policies of a grid earn before any update."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vcpo_bench.bench.cells.grid_spec import GridSpec
    from vcpo_bench.bench.policies.warm_start import WarmStart


def start_rewards(spec: GridSpec) -> list[str]:
    """One line per task with the rewards of its start policy; none for a language model, which each cell evaluates.

    Raises:
        UsageError: A start policy cannot be read.
    """
    if spec.model:
        return []
    from vcpo_bench.bench.policies.warm_start import read_warm_start
    from vcpo_bench.bench.tasks import token_task

    return [_line(read_warm_start(token_task(task), spec.start, spec.parts.policy)) for task in spec.tasks]


def _line(start: WarmStart) -> str:
    greedy = "" if math.isnan(start.greedy) else f", {start.greedy:.2f} greedy"
    return f"start policy of {start.task}: held-out reward {start.reward:.2f} sampled{greedy}"
