"""Text tasks: streams, demonstrations, expressions a user types, and the scorers of gsm8k and arithmetic."""

from decimal import Decimal
from functools import cache
from importlib.metadata import PackageNotFoundError
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vcpo_bench.bench.tasks import TASKS, token_task
from vcpo_bench.bench.tasks.text import Item, TextTask, text_task
from vcpo_bench.bench.tasks.text.gsm8k import Gsm8k, marked_number
from vcpo_bench.bench.tasks.text.items.data_task import DataTask
from vcpo_bench.bench.tasks.text.items.item_stream import ItemStream
from vcpo_bench.errors import UsageError

EXPRESSIONS = [
    f"{name}(data=sample)" if issubclass(kind, DataTask) else name
    for name, kind in TASKS.kinds.items()
    if issubclass(kind, TextTask) and name != "reasoning-gym"  # its package is optional
] + [
    "arithmetic(terms=8,largest=999)",
    "countdown(numbers=3,largest=9,target=50,style=bare)",
    "countdown(numbers=2,largest=4,target=4,style=bare)",
]


@pytest.fixture(params=EXPRESSIONS)
def task(request: pytest.FixtureRequest) -> TextTask:
    return text_task(request.param)


def test_items_are_pure_functions_of_the_keys(task: TextTask) -> None:
    again = text_task(task.canonical)
    assert again.canonical == task.canonical
    assert [task.item(3, 1, i) for i in (0, 5)] == [again.item(3, 1, i) for i in (0, 5)]
    assert list(task.items("held_out")) == list(again.items("held_out"))


def test_seed_batch_index_and_purpose_all_matter(task: TextTask) -> None:
    def row(seed: int = 0, batch: int = 0, purpose: str = "prompts") -> list[str]:
        return [task.item(seed, batch, index, purpose).prompt for index in range(12)]

    rows = [row(), row(seed=1), row(batch=1), row(purpose="demonstrations")]
    assert len({tuple(r) for r in rows}) == 4
    assert len(set(row())) > 3


def test_demonstrations_are_right_and_short_enough(task: TextTask) -> None:
    for item in [*task.items("held_out")[:80], *task.items("train")[:40], task.item(0, 0, 0)]:
        text = task.demonstration(item)
        assert task.score(item, text) == 1
        assert len(text) < task.max_response  # characters; tokens are fewer, and the end token needs room


def test_another_items_answer_is_wrong(task: TextTask) -> None:
    items = [item for item in task.items("held_out") if item.answer]
    pairs = [(a, b) for a, b in pairwise(items) if a.answer != b.answer and a.prompt != b.prompt]
    right = sum(task.score(a, task.demonstration(b)) for a, b in pairs)
    assert right < 0.2 * len(pairs)  # two tiny countdown items can share a solution's value


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=300))
def test_any_response_scores_zero_or_one(text: str) -> None:
    for expression in EXPRESSIONS:
        task, item = first_item(expression)
        for response in (text, f"<answer>{text}</answer>", f"#### {text}", f"={text}"):
            assert task.score(item, response) in (0.0, 1.0)


@cache
def first_item(expression: str) -> tuple[TextTask, Item]:
    task = text_task(expression)
    return task, task.item(0, 0, 0)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("gsm9k", "did you mean gsm8k"),
        ("countdown(", "(at character"),
        ("countdown(size=3)", "no parameter 'size'. It takes: numbers (a whole number from 2 to 6)"),
        ("countdown(numbers=x)", "numbers must be a whole number from 2 to 6"),
        ("countdown(numbers=7)", "numbers must be a whole number from 2 to 6"),
        ("countdown(largest=3)", "largest must be a whole number from 4 to 999"),
        ("countdown(target=1)", "target must be a whole number from 4 to 99999"),
        ("countdown(style=free)", "style must be tags | bare"),
        ("arithmetic(1)", "terms must be a whole number from 2 to 8"),
        ("arithmetic(largest=0)", "largest must be a whole number from 1 to 999"),
        ("math(data=sample,scorer=2)", "has scorer 1 of math only"),
        ("math(data=sample,judge=best)", "choose own or math-verify"),
        ("arithmetic(terms=2,terms=3)", "terms is given twice"),
        ("chain", "drop --model, or choose a text task (arithmetic,"),
    ],
)
def test_a_wrong_expression_is_one_clear_line(expression: str, message: str) -> None:
    with pytest.raises(UsageError, match=r"\A[^\n]*\Z") as error:
        text_task(expression)
    assert message in str(error.value)


def test_canonical_names_only_what_differs() -> None:
    assert text_task(" countdown( 3 , largest = 99 ) ").canonical == "countdown(numbers=3)"
    assert text_task("math(data=sample,scorer=1)").canonical == "math(data=sample)"


def test_a_raised_scorer_version_is_part_of_the_canonical_expression(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TASKS.get("arithmetic"), "scorer_version", 2)
    assert text_task("arithmetic").canonical == "arithmetic(scorer=2)"
    assert text_task("arithmetic(scorer=2)").canonical == "arithmetic(scorer=2)"
    with pytest.raises(UsageError, match="scorer 2 of arithmetic only"):
        text_task("arithmetic(scorer=1)")


@pytest.mark.parametrize("name", [name for name, kind in TASKS.kinds.items() if kind.needs_language_model])
def test_without_a_model_a_text_task_says_what_it_needs(name: str) -> None:
    with pytest.raises(UsageError, match="add --model"):
        token_task(name)


def test_draws_are_uniform_and_continue_beyond_a_block() -> None:
    draws = ItemStream(0, "test", 0, 0)
    values = [draws.below(5) for _ in range(5000)]
    assert {values.count(face) // 100 for face in range(5)} <= {9, 10}
    assert len({ItemStream(0, "test", 0, index).below(2**50) for index in range(50)}) == 50


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("#### 72", 72),
        ("####72", 72),
        ("so 3 * 24 = 72\n#### 72\n", 72),
        ("#### 1,234", 1234),
        ("#### $1,234.50", "1234.5"),
        ("#### -7", -7),
        ("#### -$7", -7),
        ("#### $-7", -7),
        ("#### 72.", 72),
        ("#### 72.00 dollars", 72),
        ("#### 72%", 72),
        ("#### 5 #### 6", 6),
        ("#### 5 and #### nothing", 5),
        ("72", None),
        ("### 72", None),
        ("#### x = 72", None),
        ("#### **72**", None),
        ("#### 7/2", None),
        ("#### 7 1/2", 7),
        ("#### 2^3", None),
        ("#### 1e3", None),
        ("#### 1,23", None),
        ("#### 1.2.3", None),
        ("#### --7", None),
        ("#### ٣", None),
        ("#### 72" + " " * 300, None),
        ("#### " + "9" * 50, None),
        ("", None),
    ],
)
def test_the_number_after_the_marks(text: str, value: int | str | None) -> None:
    assert marked_number(text) == (None if value is None else Decimal(value))


def test_gsm8k_compares_values_not_spellings() -> None:
    task = Gsm8k(data="sample")
    item = next(item for item in task.items("train") if item.answer == "1020")
    assert [task.score(item, text) for text in ("#### 1,020", "#### 1020.0", "#### 1021", "1020")] == [1, 1, 0, 0]


def test_gsm8k_scores_a_long_hostile_response_in_bounded_time() -> None:
    task = Gsm8k(data="sample")
    item = task.items("train")[0]
    for hostile in ("#" * 10**6, "#### -" * 10**5, "#### " + "1,111" * 10**5, "#### " + "1" * 10**6):
        assert task.score(item, hostile) == 0


@pytest.mark.parametrize(
    ("response", "score"),
    [("24", 1), ("3+28-7=31-7=24", 1), (" 24\n", 1), ("24=25", 0), ("24.0", 0), ("24=", 0), ("", 0), ("x24", 0)],
)
def test_arithmetic_reads_what_follows_the_last_equals_sign(response: str, score: float) -> None:
    task = text_task("arithmetic")
    item = task.item(0, 0, 0)._replace(prompt="3+14*2-7=", answer="24")
    assert task.score(item, response) == score


def test_arithmetic_lengths_vary_and_the_answer_is_the_value() -> None:
    task = text_task("arithmetic(terms=5)")
    items = task.items("held_out")
    assert all(eval(item.prompt[:-1]) == int(item.answer) for item in items)  # prompts are our own text
    lengths = {len(task.demonstration(item)) for item in items}
    assert min(lengths) <= 3
    assert max(lengths) >= 20


def test_a_judge_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(package: str) -> str:
        raise PackageNotFoundError(package)

    monkeypatch.setattr("vcpo_bench.bench.tasks.text.math.version", missing)
    with pytest.raises(UsageError, match="pip install math-verify"):
        text_task("math(data=sample,judge=math-verify)")
    assert text_task("math(data=sample,judge=own)").canonical == "math(data=sample)"


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
