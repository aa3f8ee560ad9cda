"""Documents and scores of token tasks, which have a small vocabulary of their own, for lm-eval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import torch

from vcpo_bench.bench.outside.lm_eval.rewards import of_responses
from vcpo_bench.bench.outside.lm_eval.token_text import TokenText
from vcpo_bench.bench.tasks import TokenTask, token_task
from vcpo_bench.errors import UsageError
from vcpo_bench.naming.grammar import first_name


def documents(task: str, cell_task: str = "", **_: Any) -> Mapping[str, Any]:
    """The held-out prompts of a task as text.

    Args:
        task: Name of the task.
        cell_task: Task of the cell that is scored, a variant of `task`; empty: the task's defaults.

    Raises:
        UsageError: The cell was trained on another task, whose tokens mean something else.
    """
    import datasets

    expression = cell_task or task
    if first_name(expression) != task:
        raise UsageError(
            f"vcpo-{task}: the cell was trained on {cell_task!r}, whose tokens mean something else; use --tasks own"
        )
    known = token_task(expression)
    words = TokenText(known.vocabulary)
    rows = [
        {"prompt": words.decode(prompt.tolist()), "answer": "", "expression": expression} for prompt in known.held_out()
    ]
    return {"test": datasets.Dataset.from_list(rows)}


def score(document: Mapping[str, str], results: Sequence[Any]) -> dict[str, float]:
    """Metrics of one document from the task's own reward; see `of_responses`."""
    task = _task(document["expression"])
    return of_responses(results, lambda response: reward(task, document["prompt"], response))


def reward(task: TokenTask, prompt: str, response: str) -> float:
    """Reward of a response given as text; 0 if the task's tokens cannot spell it.

    The end token is not part of the text: if the task has one, it ended every response below the maximum length.
    """
    words = TokenText(task.vocabulary)
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
