"""Cuts what a step trains on into optimizer steps, so that the responses to a prompt share one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vcpo_bench.adapters.verl.rows import prompt_of
from vcpo_bench.errors import UsageError


def places_of_whole_prompts(keys: Sequence[str], rows: int) -> list[list[int]]:
    """For each optimizer step the places of its rows; prompts come in the order of their first row.

    Args:
        keys: Of the trajectories.
        rows: Largest number of rows of one optimizer step.

    Raises:
        UsageError: A prompt has more rows than that.
    """
    prompts: dict[str, list[int]] = {}
    for place, key in enumerate(keys):
        prompts.setdefault(prompt_of(key), []).append(place)
    steps: list[list[int]] = [[]]
    for prompt, places in prompts.items():
        if len(places) > rows:
            raise UsageError(
                f"prompt {prompt} has {len(places)} rows, more than the {rows} of a mini-batch: raise "
                "actor.ppo_mini_batch_size"
            )
        if len(steps[-1]) + len(places) > rows:
            steps.append([])
        steps[-1] += places
    return steps


def select(batch: Any, places: Sequence[int]) -> Any:
    """The batch of these rows."""
    return type(batch)(
        keys=[batch.keys[place] for place in places],
        tags=[batch.tags[place] for place in places],
        partition_id=batch.partition_id,
        extra_info=batch.extra_info,
    )


def join(parts: Sequence[Any]) -> Any:
    """One batch of the rows of all parts."""
    first = parts[0]
    return type(first)(
        keys=[key for part in parts for key in part.keys],
        tags=[tag for part in parts for tag in part.tags],
        partition_id=first.partition_id,
        extra_info=first.extra_info,
    )
