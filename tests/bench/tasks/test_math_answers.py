r"""The scorer of `math`: what is the same answer, where the answer stands, and that nothing makes it raise or hang."""

import time
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from math_pairs import DIFFERENT, SAME, pairs

from vcpo_bench.bench.tasks.text.math import CompetitionMath
from vcpo_bench.bench.tasks.text.scoring.boxed import last_boxed, last_tagged
from vcpo_bench.bench.tasks.text.scoring.exact_numbers import number
from vcpo_bench.bench.tasks.text.scoring.math_answers import MAX_ANSWER, same_answer


@pytest.mark.parametrize(("one", "other"), pairs(SAME))
def test_same(one: str, other: str) -> None:
    assert same_answer(one, other)
    assert same_answer(other, one)


@pytest.mark.parametrize(("one", "other"), pairs(DIFFERENT))
def test_different(one: str, other: str) -> None:
    assert not same_answer(one, other)
    assert not same_answer(other, one)


@pytest.mark.parametrize("empty", ["", " ", "{}", "$$", "\\,", "x=", "."])
def test_nothing_is_no_answer(empty: str) -> None:
    assert not same_answer("5", empty)
    assert not same_answer("0", empty)


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (r"so \boxed{5}.", "5"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{3} or rather \boxed{4}", "4"),
        (r"\boxed{\boxed{5}}", "5"),
        (r"\boxed{x = \boxed{5}}", "5"),
        (r"\boxed {7}", "7"),
        (r"\fbox{7}", "7"),
        (r"$\boxed 5$", "5"),
        (r"\boxed{\{1,2\}}", r"\{1,2\}"),
        (r"\boxed{5} then it goes on \boxed{", None),
        (r"\boxed{5", None),
        (r"\boxedfoo{5}", None),
        ("#### 5", None),
        (r"\boxed", None),
        ("", None),
    ],
)
def test_last_box(text: str, content: str | None) -> None:
    assert last_boxed(text) == content


def test_last_tags_count_only_when_closed() -> None:
    assert last_tagged("<answer>1</answer> <answer>2</answer> <answer>3") == "2"
    assert last_tagged("<answer>1") is None
    assert last_tagged("1</answer>") is None


@pytest.mark.parametrize(
    "hostile",
    [
        "{" * 100_000,
        "\\boxed{" + "{" * 100_000 + "5" + "}" * 100_000 + "}",
        "\\boxed{" * 20_000 + "5" + "}" * 20_000,
        "\\boxed{" + "\\frac{1}{" * 100 + "2" + "}" * 100 + "}",
        "\\boxed{" + "(" * 400 + "5" + ")" * 400 + "}",
        "\\boxed{" + "\\sqrt" * 190 + "}",
        "\\boxed{" + "x^" * 400 + "}",
        "\\boxed{" + "9" * 900 + "}",
        "\\boxed{1\\times10^{999}}",
        "\\boxed{1\\times10^{999999999999}}",
        "\\boxed{" + "1," * 450 + "}",
        "\\boxed{" + "1,234" * 150 + "x}",
        "\\boxed{" + "1+" * 450 + "}",
        "\\boxed{" + "inches" * 16 + "x}",
        "\\boxed{" + "\\text{" * 150 + "}",
        "\\boxed{\\text}",
        "\\boxed{\\begin{pmatrix}" + "&\\\\" * 250 + "\\end{pmatrix}}",
        "\\boxed{" + "\\cup " * 190 + "}",
        "sqrt" + " " * 100_000 + "\\boxed{5",
        "\\boxed{" + "a" * 1_000_000 + "}",
    ],
)
def test_hostile_responses_score_zero_in_bounded_time(hostile: str) -> None:
    task = CompetitionMath(data="sample")
    start = time.process_time()
    assert task.score(task.items("train")[0], hostile) == 0
    assert time.process_time() - start < 1  # milliseconds on an idle machine


def test_an_answer_beyond_the_limit_is_not_looked_at() -> None:
    assert same_answer("5", "5" + " " * (MAX_ANSWER - 1))
    assert not same_answer("5", "5" + " " * MAX_ANSWER)


PIECES = st.sampled_from(
    [
        *"0123456789.,+-*/=^_!()[]{}<>|&$%x ",
        *("\\", "\\\\", "\\{", "\\}", "\\frac", "\\sqrt", "\\text", "\\pi", "\\cup", "\\left", "\\overline", "\\in"),
        *(
            "\\begin{pmatrix}",
            "\\end{pmatrix}",
            "^\\circ",
            "cm",
            "sqrt",
            "\N{SQUARE ROOT}",
            "\N{VULGAR FRACTION ONE HALF}",
        ),
        "\N{ARABIC-INDIC DIGIT THREE}",
    ]
)
ANSWERS = st.lists(PIECES, max_size=25).map("".join)


@settings(max_examples=400, deadline=None)
@given(ANSWERS, ANSWERS)
def test_any_two_texts_are_compared_without_error_and_symmetrically(one: str, other: str) -> None:
    assert same_answer(one, other) == same_answer(other, one)
    assert same_answer(one, one) == bool(one.strip())


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_any_text_scores_zero_or_one(text: str) -> None:
    task = CompetitionMath(data="sample")
    assert task.score(task.items("train")[0], text) in (0.0, 1.0)
    assert task.score(task.items("train")[0], f"\\boxed{{{text}}}") in (0.0, 1.0)


@settings(deadline=None)
@given(st.fractions(), st.fractions())
def test_numbers_are_the_same_exactly_when_equal(one: Fraction, other: Fraction) -> None:
    written = rf"\frac{{{one.numerator}}}{{{one.denominator}}}"
    assert number(written) == one
    assert same_answer(written, f"{one.numerator}/{one.denominator}")
    assert same_answer(written, f"{other.numerator}/{other.denominator}") == (one == other)
