"""The prompts of a cell as verl's data files, in the order in which its updates consume them, and its rewards."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from torch import Tensor

from vcpo_bench.bench.tasks.text.base import Item, TextTask, text_task
from vcpo_bench.bench.tasks.text.bound import BoundTask
from vcpo_bench.errors import UsageError
from vcpo_bench.files.atomic import write_bytes

TRAIN, HELD_OUT = "train.jsonl", "held_out.jsonl"
TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
"""Chat template of verl's agent loop: the prompts in the files are what the model reads."""
SOURCE = "cell"
"""Data source of every row, which names the rewards of a validation in verl's log."""
_task = cache(text_task)


def write_prompts(task: BoundTask, seed: int, prompts: int, batches: int, held_out: int, folder: Path) -> None:
    """Write both files.

    Raises:
        UsageError: A prompt or its item cannot be handed over as it is.
    """
    training = (row for batch in range(batches) for row in task.training_prompts(seed, batch, prompts))
    for name, rows in ((TRAIN, training), (HELD_OUT, task.held_out(held_out))):
        write_bytes(folder / name, "".join(_lines(task, rows)).encode())


def _lines(task: BoundTask, rows: Iterable[Tensor]) -> Iterable[str]:
    for row in rows:
        ids = row[int((row != task.pad).int().argmax()) :].tolist()
        text = task.tokenizer.decode(ids, clean_up_tokenization_spaces=False)
        if task.tokenizer(text, add_special_tokens=False)["input_ids"] != ids:
            raise UsageError(f"{task.canonical}: the tokenizer does not read the prompt {text[:40]!r} as it wrote it")
        yield json.dumps(_row(task, row, text)) + "\n"


def _row(task: BoundTask, row: Tensor, text: str) -> dict[str, object]:
    try:
        truth = ground_truth(task.source, task.item_of(row))
    except (TypeError, ValueError):
        raise UsageError(
            f"{task.canonical}: its items cannot be written into verl's data; choose another --task"
        ) from None
    turn = {"role": "user", "content": text}
    return {"data_source": SOURCE, "prompt": [turn], "reward_model": {"style": "rule", "ground_truth": truth}}


def ground_truth(task: TextTask, item: Item) -> str:
    """What `score` must know of a prompt, as the text that stands in verl's data.

    Raises:
        ValueError: The item holds something that JSON does not give back as it was.
    """
    written = json.dumps([task.canonical, item])
    if Item(*json.loads(written)[1]) != item:
        raise ValueError
    return written


def score(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **_: Any) -> float:
    """Reward of a response.

    Args:
        data_source: Not used.
        solution_str: The response, without special tokens.
        ground_truth: What the function of that name wrote.
        extra_info: Not used.
    """
    expression, item = json.loads(ground_truth)
    return float(_task(expression).score(Item(*item), solution_str))
