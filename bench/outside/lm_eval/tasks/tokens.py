"""Documents and scores of the tasks that bring their own small vocabulary (`chain`, `walk`, `walk-eos`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import torch

from vcpo_bench.bench.outside.lm_eval.tasks.rewards import of_responses
from vcpo_bench.bench.outside.lm_eval.token_text import Vocabulary
from vcpo_bench.bench.tasks import TokenTask, token_task
from vcpo_bench.errors import UsageError


def documents(task: str, cell_task: str = "", **_: Any) -> Mapping[str, Any]:
    """The held-out prompts of a task as text; a variant of it, if that is what the cell was trained on.

    Args:
        task: The task the YAML file is about.
        cell_task: Task of the cell that is scored; empty: unknown.

    Raises:
        UsageError: The cell was trained on another task, whose tokens mean something else.
    """
    import datasets

    expression = cell_task or task
    if expression.partition("(")[0] != task:
        raise UsageError(f"the lm-eval task is about {task!r}, but the cell was trained on {cell_task!r}")
    known = token_task(expression)
    words = Vocabulary(known.vocabulary)
    rows = [{"prompt": words.decode(prompt), "answer": "", "expression": expression} for prompt in known.held_out()]
    return {"test": datasets.Dataset.from_list(rows)}


def score(document: Mapping[str, str], results: Sequence[Any]) -> dict[str, float]:
    """The task's own reward, of one response or as the mean of several, and whether any of those is right."""
    task = _task(document["expression"])
    return of_responses(results, lambda response: reward(task, document["prompt"], response))


def reward(task: TokenTask, prompt: str, response: str) -> float:
    """Reward of a response in words; one the task's tokens cannot write gets 0.

    The end token is not part of the text: a response shorter than the longest one was ended by it, where there is one.
    """
    words = Vocabulary(task.vocabulary)
    try:
        tokens = words.encode(response)[: task.max_response]
    except UsageError:
        return 0.0
    if task.eos is not None and len(tokens) < task.max_response:
        tokens.append(task.eos)
    length, T = len(tokens), task.max_response
    padded = torch.tensor([tokens + [0] * (T - length)])
    mask = torch.arange(T).unsqueeze(0) < length
    return float(task.reward(torch.tensor([words.encode(prompt)]), padded, mask))


_task = cache(token_task)
