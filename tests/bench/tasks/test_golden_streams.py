"""Prompts, demonstrations, rewards and canonical names are those recorded in `golden/task_streams.json`."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from vcpo_bench.bench.tasks import TASKS, TokenTask
from vcpo_bench.bench.tasks.text import TextTask

GOLDEN: dict[str, str] = json.loads((Path(__file__).parents[2] / "golden" / "task_streams.json").read_text())


@pytest.mark.parametrize("expression", GOLDEN)
def test_a_task_draws_and_rewards_as_it_always_did(expression: str) -> None:
    task = TASKS.parse(expression)
    assert task.canonical == expression
    parts = _of_tokens(task) if isinstance(task, TokenTask) else _of_text(task)
    assert hashlib.sha256(b"".join(parts)).hexdigest()[:16] == GOLDEN[expression]


def _of_tokens(task: TokenTask) -> list[bytes]:
    shown = task.demonstrations(3, 1, 64)
    rewards = task.reward(*shown), task.reward(shown.prompts, shown.responses.roll(1, 0), shown.mask.roll(1, 0))
    tensors = (task.training_prompts(3, 1, 64), task.held_out(), *shown, *rewards)
    text = task.render(shown.prompts[0], shown.responses[0], shown.mask[0])
    return [*(tensor.numpy().tobytes() for tensor in tensors), text.encode()]


def _of_text(task: Any) -> list[bytes]:
    assert isinstance(task, TextTask)
    purposes = ("prompts", "demonstrations")
    items = [task.item(3, batch, index, purpose) for batch in (0, 1) for index in range(8) for purpose in purposes]
    items += [*task.items("held_out")[:32], *task.items("train")[:32]]
    shown = [task.demonstration(item) for item in items]
    scores = [task.score(item, text) for item, text in zip(items, shown, strict=True)]
    scores += [task.score(item, text) for item, text in zip(items, shown[1:], strict=False)]
    return [json.dumps([items, shown, scores, task.max_response]).encode()]
