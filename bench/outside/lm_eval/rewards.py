"""From the rewards of a document's responses to metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def of_responses(results: Sequence[Any], reward: Callable[[str], float]) -> dict[str, float]:
    """Metrics of a document.

    Args:
        results: What lm-eval passes: one response, or a list with all of them.
        reward: Reward of a response.

    Returns:
        `reward` (mean) and, of several responses, `any_right` (largest reward).
    """
    if not isinstance(results[0], list):
        return {"reward": reward(results[0])}
    rewards = [reward(response) for response in results[0]]
    return {"reward": sum(rewards) / len(rewards), "any_right": max(rewards)}
