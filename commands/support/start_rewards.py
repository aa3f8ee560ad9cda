"""What the start policies of a grid earn before any update."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vcpo_bench.bench.cells.grid_spec import GridSpec


def start_rewards(spec: GridSpec) -> list[str]:
    """One line per task with the rewards of its start policy; none for a language model, which each cell evaluates.

    Raises:
        UsageError: A start policy cannot be read.
    """
    if spec.model:
        return []
    from vcpo_bench.bench.policies.warm_start import read_origin
    from vcpo_bench.bench.tasks import token_task

    return [_line(read_origin(token_task(task), spec.start, spec.parts.policy)) for task in spec.tasks]


def _line(origin: Mapping[str, str]) -> str:
    greedy = f", {float(origin['greedy']):.2f} greedy" if "greedy" in origin else ""
    return f"start policy of {origin['task']}: held-out reward {float(origin['reward']):.2f} sampled{greedy}"
