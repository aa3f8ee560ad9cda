"""Settings in YAML: plain values, and no key twice."""

import pytest
import yaml

from vcpo_bench.files.plain_yaml import read_yaml


@pytest.mark.parametrize("text", ["a: 1\nb: 2\na: 3", "{a: 1, a: 1}", "x:\n  a: 1\n  a: 2", "1: a\n1: b"])
def test_a_key_that_is_there_twice_is_refused(text: str) -> None:
    with pytest.raises(yaml.YAMLError, match="is there twice"):
        read_yaml(text)


@pytest.mark.parametrize(
    "text",
    [
        "base: &b {x: 1}\na: {derived: &d {<<: *b, x: 2}}\nother: {<<: *d}",
        "1: a\n'1': b",
        "? [1, 2]\n: 3",
        "!!map a",
        "lr: 1e-3\nmethods: clip,vcpo",
        "",
    ],
)
def test_all_else_is_as_the_safe_loader_has_it(text: str) -> None:
    try:
        expected = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, TypeError) as problem:
        with pytest.raises(type(problem)):
            read_yaml(text)
    else:
        assert read_yaml(text) == expected


@pytest.mark.parametrize("text", ["010", "1:30", "1:30.5", "0x10", "0b11", "1_0", "00"])
def test_a_number_in_another_spelling_is_the_text_it_is(text: str) -> None:
    assert read_yaml(f"a: {text}") == {"a": text}


@pytest.mark.parametrize("text", ["10", "-3", "+4", "0", "1.5", ".5", "1.0e-4", ".inf"])
def test_decimal_numbers_are_numbers(text: str) -> None:
    assert read_yaml(f"a: {text}") == {"a": float(text.replace(".inf", "inf"))}
