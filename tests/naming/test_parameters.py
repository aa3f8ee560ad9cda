"""Parameters: what each type accepts, refuses, and writes so that it is read again."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcpo_bench.naming.parameters import (
    choice,
    flag,
    integer,
    legal_values,
    number,
    parameter_of,
    text,
    write_number,
)


@pytest.mark.parametrize(
    ("made", "legal"),
    [
        (number(1.0), "a number"),
        (number(1.0, minimum=0), "a number, 0 or more"),
        (number(1.0, maximum=2.5), "a number, 2.5 or less"),
        (number(1.0, minimum=0, maximum=1), "a number from 0 to 1"),
        (number(1.0, minimum=0, below=1), "a number from 0 to below 1"),
        (number(1.0, below=1), "a number below 1"),
        (number(1.0, above=0), "a number above 0"),
        (number(1.0, above=0, maximum=2), "a number above 0, at most 2"),
        (number("off", minimum=0, words=("off",)), "off or a number, 0 or more"),
        (integer(1, minimum=1), "a whole number, 1 or more"),
        (integer(1, minimum=1, maximum=9), "a whole number from 1 to 9"),
        (choice("a", "b"), "a | b"),
        (flag(True), "on | off"),
        (text("", legal="a path"), "a path"),
    ],
)
def test_legal_values_in_words(made: Any, legal: str) -> None:
    assert parameter_of(made).legal == legal


def test_legal_values_of_several_parameters_are_one_line() -> None:
    known = {"a": parameter_of(choice("x", "y")), "b": parameter_of(flag(True))}
    assert legal_values(known) == "a (x | y); b (on | off)"
    assert legal_values({}) == "no parameters"


@pytest.mark.parametrize(
    ("made", "texts"),
    [
        (number(1.0), ["", "x", "nan", "1/0", "1//2", "1,5", "inf/inf", "0x10"]),
        (number(1.0, minimum=0), ["-1", "-inf"]),
        (number(1.0, maximum=2), ["2.1", "inf"]),
        (number(1.0, above=0), ["0", "-0.0"]),
        (number(1.0, below=1), ["1", "1.5"]),
        (number("off", words=("off",)), ["on", "OFF"]),
        (integer(1, minimum=1), ["0", "-1", "1.0", "1e3", "", "--1", "-+1", "1_0", "\uff11", "9" * 20]),
        (integer(1, minimum=1, maximum=9), ["10"]),
        (choice("a", "b"), ["", "c", "A"]),
        (flag(True), ["True", "1", "", "yes"]),
    ],
)
def test_illegal_texts_are_value_errors(made: Any, texts: list[str]) -> None:
    for each in texts:
        with pytest.raises(ValueError, match=r"."):
            parameter_of(made).read(each)


@pytest.mark.parametrize(
    ("made", "values"),
    [
        (number(1.0), [float("nan"), "1", None, True]),
        (number(1.0, minimum=0), [-1]),
        (integer(1, minimum=1), [0, 1.0, True, "1"]),
        (choice("a", "b"), ["c", 1]),
        (flag(True), [1, "on"]),
        (text("", legal="a path"), [1, "a,b", " a", "a ", "a)", "[a"]),
    ],
)
def test_illegal_values_from_python_are_refused(made: Any, values: list[Any]) -> None:
    for each in values:
        with pytest.raises(ValueError, match=r"must be|cannot be written"):
            parameter_of(made).check(each)


@pytest.mark.parametrize(("read", "value"), [("1/8", 0.125), ("-1/4", -0.25), ("1e-3", 0.001), ("inf", float("inf"))])
def test_numbers_may_be_fractions(read: str, value: float) -> None:
    assert parameter_of(number(0.0)).read(read) == value


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (8.0, "8"),
        (0.0003, "0.0003"),
        (1e-6, "1e-06"),
        (float("inf"), "inf"),
        (-2.0, "-2"),
        (1e16, "1e+16"),
        (-0.0, "0"),
    ],
)
def test_numbers_have_one_spelling(value: float, written: str) -> None:
    assert write_number(value) == written


@given(st.floats(allow_nan=False))
def test_a_written_number_is_read_to_the_last_bit(value: float) -> None:
    one = parameter_of(number(0.0))
    assert one.read(one.write(value)) == value


@given(st.integers(0, 10**18))
def test_a_written_whole_number_is_read_again(value: int) -> None:
    one = parameter_of(integer(0, minimum=0))
    assert one.read(one.write(value)) == value


@pytest.mark.parametrize("value", [True, False])
def test_a_written_flag_is_read_again(value: bool) -> None:
    one = parameter_of(flag(True))
    assert one.read(one.write(value)) is value


def test_words_of_a_number_stand_for_themselves() -> None:
    one = parameter_of(number("off", minimum=0, words=("off",)))
    assert (one.read("off"), one.write("off"), one.read("2"), one.write(2.0)) == ("off", "off", 2.0, "2")


def test_a_number_can_have_a_spelling_of_its_own() -> None:
    assert parameter_of(number(1.0, write="{:g}".format)).write(1e-7) == "1e-07"
