"""Options of every text task: solved examples and a system prompt, in a chat template and as plain text."""

import pytest

from vcpo_bench.bench.tasks.text import text_task
from vcpo_bench.errors import UsageError

CHAT = "gsm8k(data=sample,shots=2,system=Be brief.)"


def test_examples_and_system_prompt_come_before_the_question() -> None:
    task = text_task(CHAT)
    item = task.item(0, 0, 0)
    first, second = task.examples
    turns = [(turn["role"], turn["content"]) for turn in task.conversation(item)]
    shown = [(one.prompt, task.demonstration(one)) for one in (first, second)]
    examples = [turn for asked, said in shown for turn in (("user", asked), ("assistant", said))]
    assert turns == [("system", "Be brief."), *examples, ("user", item.prompt)]
    text = "".join(f"{asked}\n{said}\n\n" for asked, said in shown)
    assert task.plain(item) == f"Be brief.\n{text}{item.prompt}"


def test_without_options_a_prompt_is_the_question() -> None:
    task = text_task("gsm8k(data=sample)")
    item = task.item(0, 0, 0)
    assert task.plain(item) == item.prompt
    assert task.conversation(item) == [{"role": "user", "content": item.prompt}]


def test_the_options_are_part_of_the_name() -> None:
    assert text_task(CHAT).canonical == CHAT
    assert text_task("arithmetic(shots=0)").canonical == "arithmetic"


def test_a_task_in_turns_takes_no_examples() -> None:
    with pytest.raises(UsageError, match=r"calc-text\(shots=1\): a task in turns takes no examples"):
        text_task("calc-text(shots=1)")
