"""The arguments of one item, read as the values of the parameters there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from vcpo_bench.errors import UsageError
from vcpo_bench.naming.errors import ExpressionError
from vcpo_bench.naming.grammar import Argument, NamedItem, Span, closest
from vcpo_bench.naming.parameters import Parameter, legal_values


def read_arguments(
    text: str, item: NamedItem, known: Mapping[str, Parameter], *, bare: str = "", nested: Callable[[str], str] = str
) -> dict[str, object]:
    """The values an item gives, by parameter.

    Args:
        text: The whole expression, for errors to point into.
        item: One of its items.
        known: The parameters there are.
        bare: The parameter that the first value belongs to when it has no key; empty: every value needs one.
        nested: What an expression as a value is replaced with: its canonical spelling.

    Raises:
        ExpressionError: Points at a key or value that is not legal, and says what is.
    """
    found: dict[str, object] = {}
    for place, argument in enumerate(item.arguments):
        key, value = _key(text, item, argument, known, bare if place == 0 else "")
        if key in found:
            raise ExpressionError(text, (argument.key or argument.value).start, f"{key} is given twice")
        found[key] = _value(text, key, value, known[key], nested)
    return found


def _key(text: str, item: NamedItem, argument: Argument, known: Mapping[str, Parameter], bare: str) -> tuple[str, Span]:
    name = item.name.text
    if argument.key is None:
        if bare:
            return bare, argument.value
        raise ExpressionError(text, argument.value.start, f"expected key=value; {name} takes: {legal_values(known)}")
    key = argument.key.text
    if key not in known:
        problem = f"{name} has no parameter {key!r}{closest(key, known) or '.'} It takes: {legal_values(known)}"
        raise ExpressionError(text, argument.key.start, problem)
    return key, argument.value


def _value(text: str, key: str, value: Span, parameter: Parameter, nested: Callable[[str], str]) -> object:
    try:
        return nested(value.text) if parameter.kind == "expression" else parameter.read(value.text)
    except ExpressionError as error:
        raise ExpressionError(text, value.start + error.position, error.problem) from None
    except ValueError as error:
        reason = f" ({error})" if isinstance(error, UsageError) else ""
        close = closest(value.text, parameter.words) or "."
        problem = f"{key}={value.text} is not legal{close} {key} must be {parameter.legal}{reason}"
        raise ExpressionError(text, value.start, problem) from None
