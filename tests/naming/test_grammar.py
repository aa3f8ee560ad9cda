"""The grammar: what each character belongs to, and errors that point into the text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcpo_bench.naming.errors import ExpressionError
from vcpo_bench.naming.grammar import NamedItem, Span, closest, read_item, read_items, split, split_list

NOISE = st.text(alphabet="ab1 .+,=:()[]-/", max_size=24)


def shown(item: NamedItem) -> tuple[str, str | None, list[tuple[str | None, str]]]:
    arguments = [(key and key.text, value.text) for key, value in item.arguments]
    return item.name.text, item.suffix and item.suffix.text, arguments


def pieces(item: NamedItem) -> list[Span]:
    found = [item.name, item.suffix, *(each for argument in item.arguments for each in argument)]
    return [piece for piece in found if piece is not None]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("clip", [("clip", None, [])]),
        (" clip ( ) ", [("clip", None, [])]),
        ("chain(8)", [("chain", None, [(None, "8")])]),
        ("chain( n = 8 , m=1/8 )", [("chain", None, [("n", "8"), ("m", "1/8")])]),
        ("a(x=)", [("a", None, [("x", "")])]),
        ("vespo:paper(k=2)", [("vespo", "paper", [("k", "2")])]),
        ("vespo:", [("vespo", "", [])]),
        ("a+b(c=d+e)", [("a", None, []), ("b", None, [("c", "d+e")])]),
        ("a(to=b(c=[1,2],d=3),e=4)", [("a", None, [("to", "b(c=[1,2],d=3)"), ("e", "4")])]),
        ("a(b(c=1))", [("a", None, [(None, "b(c=1)")])]),
        ("a(path=x=y)", [("a", None, [("path", "x=y")])]),
        ("a(x:y)", [("a", None, [(None, "x:y")])]),
    ],
)
def test_items(text: str, expected: list[object]) -> None:
    assert [shown(item) for item in read_items(text)] == expected


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        ("", 0, "an expression is missing"),
        ("  ", 0, "an expression is missing"),
        ("a++b", 2, "something is missing around '+'"),
        ("+a", 0, "something is missing around '+'"),
        ("a(x,,y)", 4, "something is missing around ','"),
        ("a(x", 1, "this '(' is never closed"),
        ("a(x[y)", 5, "unexpected ')'"),
        ("a)", 1, "unexpected ')'"),
        ("a(x]", 3, "unexpected ']'"),
        ("a(x)y", 4, "unexpected 'y' after 'a(x)'"),
        ("a(x)(y)", 4, "unexpected '(' after 'a(x)'"),
        ("b+(x)", 2, "a name is missing"),
        (" :x", 1, "a name is missing"),
    ],
)
def test_errors_point_at_the_character(text: str, position: int, problem: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        read_items(text)
    assert (caught.value.position, caught.value.problem, caught.value.expression) == (position, problem, text)
    assert f"at character {position + 1} of {text!r}" in str(caught.value)
    assert caught.value.marked() == f"{text[:position]}>>>{text[position:]}"


@pytest.mark.parametrize("text", ["a(x", "a]", "a(b)c", "[a"])
def test_one_item_is_as_strict_as_a_list_of_them(text: str) -> None:
    with pytest.raises(ExpressionError):
        read_item(text)


def attempt(text: str, piece: Span | None = None) -> tuple[list[NamedItem], ExpressionError | None]:
    """The items of a text, or the error."""
    try:
        return read_items(text, piece), None
    except ExpressionError as error:
        return [], error


@given(NOISE)
def test_any_text_is_read_or_refused_at_one_of_its_characters(text: str) -> None:
    items, error = attempt(text)
    if error is not None:
        assert error.expression == text
        assert 0 <= error.position <= len(text)
        assert "\n" not in str(error)
    for piece in (piece for item in items for piece in pieces(item)):
        assert text[piece.start : piece.start + len(piece.text)] == piece.text
        assert piece.text == piece.text.strip()


@given(NOISE, st.integers(0, 5))
def test_a_stretch_is_read_as_if_it_stood_alone(text: str, before: int) -> None:
    (alone, error), whole = attempt(text), "(" * before + text
    found, moved = attempt(whole, Span(text, before))
    assert [shown(item) for item in found] == [shown(item) for item in alone]
    assert (error is None) == (moved is None)
    if error is not None and moved is not None:
        assert (moved.position, moved.problem) == (error.position + before, error.problem)


@given(NOISE, st.sampled_from("+,="))
def test_what_is_cut_can_be_joined_again(text: str, separator: str) -> None:
    try:
        found = split(text, Span(text), separator)
    except ExpressionError:
        return
    assert separator.join(piece.text for piece in found) == text


def test_lists_are_cut_outside_brackets() -> None:
    assert split_list("clip, clip(high=0.28,low=0.1) ,a[1,2]") == ["clip", "clip(high=0.28,low=0.1)", "a[1,2]"]
    with pytest.raises(ExpressionError, match="missing around ','"):
        split_list("clip,,tis")


def test_close_names_are_offered_and_others_are_not() -> None:
    assert closest("vepso", ["vespo", "vcpo", "clip"]) == "; did you mean vespo or vcpo?"
    assert closest("zzzzzz", ["vespo", "vcpo", "clip"]) == ""
