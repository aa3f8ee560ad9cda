"""Parameters of methods and parts: dataclass fields that know their legal values.

A parameter is written `low: float = number(0.2, minimum=0.0)`. The metadata lets the expression parser read a
value, name the legal ones, and print the value in its one canonical spelling.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

KEY = "vcpo_bench_parameter"


@dataclass(frozen=True)
class Parameter:
    """How one parameter is read, checked and written.

    Attributes:
        legal: Legal values in words, shown in errors and documentation.
        read: Text to value; raises `ValueError` when the text is not a legal value.
        write: Value to its canonical text.
        check: Raises `ValueError` when a value given from Python is not legal.
        kind: `number`, `integer`, `choice`, `flag` or `expression`.
    """

    legal: str
    read: Callable[[str], Any]
    write: Callable[[Any], str]
    check: Callable[[Any], None]
    kind: str


def _metadata(parameter: Parameter) -> Mapping[str, Parameter]:
    return {KEY: parameter}


def write_number(value: float) -> str:
    """The canonical spelling of a number: `8` for 8.0, `0.0003` for 3e-4."""
    if math.isfinite(value) and value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return repr(float(value))


def _read_number(text: str) -> float:
    numerator, slash, denominator = text.partition("/")
    try:
        return float(numerator) / float(denominator) if slash else float(numerator)
    except (ValueError, ZeroDivisionError):
        raise ValueError("not a number") from None


def _inside(minimum: float | None, maximum: float | None) -> str:
    if minimum is not None and maximum is not None:
        return f"a number from {write_number(minimum)} to {write_number(maximum)}"
    if minimum is not None:
        return f"a number, {write_number(minimum)} or more"
    return "a number" if maximum is None else f"a number, {write_number(maximum)} or less"


def number(
    default: float | str, *, minimum: float | None = None, maximum: float | None = None, words: tuple[str, ...] = ()
) -> Any:
    """A real parameter, optionally also one of a few words (`base=measured`).

    Args:
        default: Its default, a number or one of the words.
        minimum: Smallest legal number.
        maximum: Largest legal number.
        words: Words accepted instead of a number.
    """
    legal = " or ".join([*words, _inside(minimum, maximum)])

    def check(value: Any) -> None:
        if isinstance(value, str) and value in words:
            return
        if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
            raise ValueError(f"must be {legal}")
        if (minimum is not None and value < minimum) or (maximum is not None and value > maximum):
            raise ValueError(f"must be {legal}")

    def read(text: str) -> float | str:
        value: float | str = text if text in words else _read_number(text)
        check(value)
        return value

    def write(value: float | str) -> str:
        return value if isinstance(value, str) else write_number(value)

    return field(default=default, metadata=_metadata(Parameter(legal, read, write, check, "number")))


def integer(default: int, *, minimum: int) -> Any:
    """A whole-number parameter of at least `minimum`."""
    legal = f"a whole number, {minimum} or more"

    def check(value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
            raise ValueError(f"must be {legal}")

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise ValueError(f"must be {legal}") from None
        check(value)
        return value

    return field(default=default, metadata=_metadata(Parameter(legal, read, str, check, "integer")))


def choice(default: str, *others: str) -> Any:
    """A parameter that is one of a few words, the default first."""
    words = (default, *others)
    legal = " | ".join(words)

    def check(value: Any) -> None:
        if value not in words:
            raise ValueError(f"must be one of: {legal}")

    def read(text: str) -> str:
        check(text)
        return text

    return field(default=default, metadata=_metadata(Parameter(legal, read, str, check, "choice")))


def flag(default: bool) -> Any:
    """A yes-or-no parameter, written `on` or `off`."""
    words = {"on": True, "off": False}

    def check(value: Any) -> None:
        if not isinstance(value, bool):
            raise ValueError("must be on | off")

    def read(text: str) -> bool:
        if text not in words:
            raise ValueError("must be one of: on | off")
        return words[text]

    def write(value: bool) -> str:
        return "on" if value else "off"

    return field(default=default, metadata=_metadata(Parameter("on | off", read, write, check, "flag")))


def expression(default: str) -> Any:
    """A parameter that is itself a method expression (`to=vcpo`); the parser makes it canonical."""

    def check(value: Any) -> None:
        if not isinstance(value, str) or not value:
            raise ValueError("must be a method expression")

    def read(text: str) -> str:
        check(text)
        return text

    return field(default=default, metadata=_metadata(Parameter("a method expression", read, str, check, "expression")))
