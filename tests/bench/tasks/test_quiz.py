"""quiz: every kind is answered by its own arithmetic, and only the first line counts where examples lead on."""

import re

import pytest

from vcpo_bench.bench.tasks.text import TextTask, text_task

EXPRESSIONS = [f"quiz(kind={kind},shots={shots})" for kind in ("sum", "mod", "largest", "letters") for shots in (0, 2)]


def worked_out(question: str) -> int:
    """The answer, from the words of a question."""
    numbers = [int(found) for found in re.findall("[0-9]+", question)]
    if "remainder" in question:
        return numbers[0] % numbers[1]
    if "largest" in question:
        return max(numbers)
    if "letter" in question:
        letter, word = re.findall('"([a-z]+)"', question)
        return word.count(letter)
    return sum(numbers)


@pytest.fixture(params=EXPRESSIONS)
def task(request: pytest.FixtureRequest) -> TextTask:
    return text_task(request.param)


def test_the_answer_is_that_of_the_question(task: TextTask) -> None:
    items = [task.item(0, batch, index) for batch in range(5) for index in range(20)]
    assert [int(item.answer) for item in items] == [worked_out(item.prompt) for item in items]
    assert len({item.answer for item in items}) > 1


def test_questions_held_out_are_never_trained_on_nor_shown_as_examples(task: TextTask) -> None:
    held_out = {item.prompt for item in task.items("held_out")}
    trained = {task.item(0, batch, index).prompt for batch in range(20) for index in range(20)}
    assert not held_out & (trained | {item.prompt for item in task.examples})


def test_the_last_number_counts_and_after_examples_that_of_the_first_line() -> None:
    asked, continued = text_task("quiz"), text_task("quiz(shots=1)")
    item = asked.item(0, 0, 0)
    assert asked.score(item, f"2 + 2 = {item.answer}") == 1
    assert asked.score(item, f"{item.answer}, or 99") == 0
    assert asked.score(item, "no idea") == 0
    item = continued.item(0, 0, 0)
    assert continued.score(item, f"{item.answer}\n3+4=") == 1
    assert continued.score(item, f"99\n{item.answer}") == 0


def test_a_prompt_with_examples_can_be_continued() -> None:
    task = text_task("quiz(shots=2)")
    assert re.fullmatch(r"([0-9]\+[0-9]=[0-9]+\n){2}[0-9]\+[0-9]=", task.plain(task.item(0, 0, 0)))
    task = text_task("quiz(kind=mod,shots=1)")
    assert re.fullmatch(r"Question: .*\?\nAnswer: [0-9]\n\nQuestion: .*\?\nAnswer:", task.plain(task.item(0, 0, 0)))
