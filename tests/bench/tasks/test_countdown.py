"""countdown: the parser against Python's own arithmetic, the scorer against brute force, hostile responses."""

from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vcpo_bench.bench.tasks.text import Item
from vcpo_bench.bench.tasks.text.countdown import Countdown
from vcpo_bench.bench.tasks.text.scoring.expressions import evaluate


@pytest.mark.parametrize(
    ("text", "value", "numbers"),
    [
        ("7", 7, [7]),
        ("1+2*3", 7, [1, 2, 3]),
        ("(1+2)*3", 9, [1, 2, 3]),
        ("8/(3-8/3)", 24, [8, 3, 8, 3]),
        ("10-4-3", 3, [10, 4, 3]),
        ("16/4/2", 2, [16, 4, 2]),
        ("-3+5", 2, [3, 5]),
        ("2*-(3-8)", 10, [2, 3, 8]),
        (" 1 +\t2 ", 3, [1, 2]),
        ("0*5", 0, [0, 5]),
    ],
)
def test_expressions_have_their_exact_value(text: str, value: int, numbers: list[int]) -> None:
    found = evaluate(text)
    assert found is not None
    assert found.value == value
    assert found.numbers == numbers


@pytest.mark.parametrize(
    "text",
    ["", " ", "()", "1+", "+", "(1", "1)", "1 2", "(1)(2)", "2(3)", "1**2", "7//2", "1.5", "1/0", "1/(2-2)", "01"],
)
def test_what_is_no_arithmetic_is_no_expression(text: str) -> None:
    assert evaluate(text) is None


@pytest.mark.parametrize(
    "text",
    [
        *(
            "x",
            "1=1",
            "1,2",
            "__import__('os')",
            "9e9",
            "1_0",
            "\N{ARABIC-INDIC DIGIT THREE}",
            "1\N{MULTIPLICATION SIGN}2",
        ),
        *("(" * 30 + "1" + ")" * 30, "-" * 100 + "1", "1+" * 100 + "1", "9" * 201, "1\n+2"),
    ],
)
def test_anything_else_is_no_expression(text: str) -> None:
    assert evaluate(text) is None


def test_a_run_of_stars_or_brackets_takes_no_time() -> None:
    assert evaluate("(" * 10**6) is None
    assert evaluate("9**9**9**9") is None


TREES = st.recursive(
    st.integers(0, 99).map(str),
    lambda inner: st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda t: f"({t[0]}{t[1]}{t[2]})"),
    max_leaves=8,
)


@settings(deadline=None)
@given(TREES)
def test_random_expressions_have_pythons_value(text: str) -> None:
    numbers = "".join(character if character.isdigit() else " " for character in text).split()
    code = "".join(
        f"F({part})" if part.isdigit() else part for part in text.replace("(", "( ").translate(SPACED).split()
    )
    try:
        expected = eval(code, {"F": Fraction})  # our own text
    except ZeroDivisionError:
        assert evaluate(text) is None
        return
    found = evaluate(text)
    assert found is not None
    assert found.value == expected
    assert found.numbers == [int(number) for number in numbers]


SPACED = str.maketrans({sign: f" {sign} " for sign in "+-*/)"})


def reachable(numbers: tuple[int, ...]) -> dict[Fraction, str]:
    """Every value of an expression that uses all the numbers, with one such expression."""
    if len(numbers) == 1:
        return {Fraction(numbers[0]): str(numbers[0])}
    found: dict[Fraction, str] = {}
    for order in permutations(numbers):
        for cut in range(1, len(order)):
            for a, left in reachable(order[:cut]).items():
                for b, right in reachable(order[cut:]).items():
                    values = {"+": a + b, "-": a - b, "*": a * b} | ({"/": a / b} if b else {})
                    found |= {value: f"({left}{sign}{right})" for sign, value in values.items() if value not in found}
    return found


def make_item(numbers: tuple[int, ...], target: int) -> Item:
    return Item("", "", {"numbers": list(numbers), "target": target})


@settings(max_examples=25, deadline=None)
@given(st.tuples(*[st.integers(1, 12)] * 3))
def test_scores_agree_with_brute_force(numbers: tuple[int, int, int]) -> None:
    task = Countdown(numbers=3, style="bare")
    everything = reachable(numbers)
    for value, expression in everything.items():
        for target in {1, 5, 24, int(value)}:
            assert task.score(make_item(numbers, target), expression) == (value == target)


def test_every_item_can_be_reached_by_brute_force() -> None:
    task = Countdown(numbers=3, largest=9, target=50)
    for item in task.items("held_out")[:60]:
        assert item.meta["target"] in reachable(tuple(item.meta["numbers"]))
        assert 1 <= item.meta["target"] <= 50


@pytest.mark.parametrize(
    ("response", "score"),
    [
        ("<answer>(5+7)*3</answer>", 1),
        ("<think>5*7=35</think> <answer> 3*(7+5) </answer>", 1),
        ("<answer>1</answer><answer>(5+7)*3</answer>", 1),
        ("<answer>(5+7)*3</answer><answer>1</answer>", 0),
        ("<answer>(5+7)*3 = 36</answer>", 0),
        ("<answer>36</answer>", 0),  # uses none of the numbers
        ("<answer>5+7+3+21</answer>", 0),  # uses one that is not there
        ("<answer>(5+7)*3*3/3</answer>", 0),  # uses one more often than given
        ("<answer>5*7+1</answer>", 0),  # leaves one out
        ("<answer>5+7+3</answer>", 0),  # wrong value, right format: nothing
        ("(5+7)*3", 0),
        ("<answer>(5+7)*3", 0),
        ("", 0),
    ],
)
def test_a_response_needs_tags_all_numbers_and_the_value(response: str, score: float) -> None:
    assert Countdown(numbers=3).score(make_item((3, 5, 7), 36), response) == score


def test_repeated_numbers_are_used_as_often_as_given() -> None:
    task = Countdown(numbers=3, style="bare")
    assert task.score(make_item((2, 2, 9), 36), "2*2*9") == 1
    assert task.score(make_item((2, 2, 9), 18), "2*9") == 0


def test_prompts_name_the_numbers_and_the_target() -> None:
    tags, bare = Countdown(numbers=3), Countdown(numbers=3, style="bare")
    item = bare.item(0, 0, 0)
    assert item.prompt == f"{','.join(map(str, item.meta['numbers']))}={item.meta['target']}:"
    worded = tags.item(0, 0, 0)
    assert worded.meta == item.meta
    assert f"equals {item.meta['target']}." in worded.prompt
