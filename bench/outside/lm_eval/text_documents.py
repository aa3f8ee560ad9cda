"""Documents and scores of text tasks for lm-eval."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from vcpo_bench.bench.tasks.text import Item, text_task
from vcpo_bench.naming.grammar import first_name


def documents(task: str, cell_task: str = "", chat: bool = False, **_: Any) -> Mapping[str, Any]:
    """The held-out items of a task, of the cell's own variant and data if it was trained on that task.

    Without a chat template, what is asked begins with the examples and the system prompt of the task.

    Args:
        task: Name of the task.
        cell_task: Task of the cell that is scored; empty: unknown.
        chat: Whether the model puts them into a chat template.
    """
    import datasets

    known = text_task(cell_task if cell_task and first_name(cell_task) == task else task)
    rows = [
        {
            "asked": item.prompt if chat else known.plain(item),
            "prompt": item.prompt,
            "answer": item.answer,
            "meta": json.dumps(item.meta),
            "expression": known.canonical,
        }
        for item in known.items("held_out")
    ]
    return {"test": datasets.Dataset.from_list(rows)}


def score(document: Mapping[str, str], results: Sequence[Any]) -> dict[str, float]:
    """Metrics of one document from the task's own score; see `of_responses`."""
    item = Item(document["prompt"], document["answer"], json.loads(document["meta"]))
    task = _task(document["expression"])
    return of_responses(results, lambda response: task.score(item, response))


_task = cache(text_task)


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
