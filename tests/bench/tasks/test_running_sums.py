"""running-sums: the steps are right, only the final number counts, and the longest solution fits."""

import re

import pytest

from vcpo_bench.bench.tasks.text import text_task


@pytest.mark.parametrize("terms", [2, 6, 12])
def test_every_step_of_a_demonstration_adds_up(terms: int) -> None:
    task = text_task(f"running-sums(terms={terms})")
    for index in range(30):
        item = task.item(0, 0, index)
        numbers = [int(found) for found in re.findall("[0-9]+", item.prompt)]
        assert len(numbers) == terms
        *steps, last = task.demonstration(item).split("\n")
        total = numbers[0]
        for step, number in zip(steps, numbers[1:], strict=True):
            assert step == f"{total}+{number}={total + number}"
            total += number
        assert last == f"answer {total}"
        assert task.score(item, task.demonstration(item)) == 1
        assert len(task.demonstration(item)) + 1 < task.max_response  # characters; no tokenizer needs more tokens


def test_only_the_number_at_the_end_counts() -> None:
    task = text_task("running-sums")
    item = task.item(0, 0, 0)
    assert task.score(item, f"1+1=3\nanswer {item.answer}") == 1
    assert task.score(item, f"answer {item.answer}\n") == 1
    assert task.score(item, f"answer {item.answer}, I think") == 0
    assert task.score(item, f"answer {int(item.answer) + 1}") == 0
    assert task.score(item, item.answer) == 0
