"""Parameters of everything that can be named: dataclass fields that know their legal values.

A parameter is written `low: float = number(0.2, minimum=0.0)`. The metadata lets the expression parser read a
value, name the legal ones, and print the value in its one canonical spelling.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from vcpo_bench.naming.errors import ExpressionError
from vcpo_bench.naming.grammar import Span, split

KEY = "vcpo_bench_parameter"


@dataclass(frozen=True)
class Parameter:
    """How one parameter is read, checked and written.

    Attributes:
        legal: Description of the legal values, shown in errors and documentation.
        read: Text to value; raises `ValueError` when the text is not a legal value.
        write: Value to its canonical text.
        check: Raises `ValueError` when a value given from Python is not legal.
        kind: `number`, `integer`, `choice`, `flag`, `text`, `expression`, or `custom`.
        words: The legal words, where there are some.
    """

    legal: str
    read: Callable[[str], Any]
    write: Callable[[Any], str]
    check: Callable[[Any], None]
    kind: str
    words: tuple[str, ...] = ()


def custom(default: Any, parameter: Parameter) -> Any:
    """A parameter of a kind of its own."""
    return field(default=default, metadata=_metadata(parameter))


def number(
    default: float | str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    below: float | None = None,
    words: tuple[str, ...] = (),
    write: Callable[[float], str] | None = None,
) -> Any:
    """A real parameter, optionally also one of a few words (`base=measured`).

    Args:
        default: Its default, a number or one of the words.
        minimum: Smallest legal number.
        maximum: Largest legal number.
        above: Bound that every legal number exceeds; given instead of `minimum`.
        below: Bound that a legal number does not reach; infinity: any finite number is legal.
        words: Words accepted instead of a number.
        write: Number to canonical text; default: `write_number`. A number that is read is what this text says.
    """
    legal = " or ".join([*words, _inside(minimum, maximum, above, below)])
    spell = write or write_number

    def check(value: Any) -> None:
        if isinstance(value, str) and value in words:
            return
        if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
            raise ValueError(f"must be {legal}")
        too_large = (maximum is not None and value > maximum) or (below is not None and value >= below)
        too_small = (minimum is not None and value < minimum) or (above is not None and value <= above)
        if too_large or too_small:
            raise ValueError(f"must be {legal}")

    def read(text: str) -> float | str:
        value: float | str = text if text in words else _read_number(spell(_read_number(text)))
        check(value)
        return value

    def shown(value: float | str) -> str:
        return value if isinstance(value, str) else spell(value)

    return custom(default, Parameter(legal, read, shown, check, "number", words))


def integer(default: int, *, minimum: int, maximum: int | None = None) -> Any:
    """A whole-number parameter from `minimum` to `maximum`."""
    legal = f"a whole number, {minimum} or more" if maximum is None else f"a whole number from {minimum} to {maximum}"

    def check(value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"must be {legal}")
        if value < minimum or (maximum is not None and value > maximum):
            raise ValueError(f"must be {legal}")

    def read(text: str) -> int:
        if not re.fullmatch(r"[+-]?[0-9]{1,19}", text):
            raise ValueError(f"must be {legal}")
        value = int(text)
        check(value)
        return value

    return custom(default, Parameter(legal, read, str, check, "integer"))


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

    return custom(default, Parameter(legal, read, str, check, "choice", words))


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

    return custom(default, Parameter("on | off", read, write, check, "flag", tuple(words)))


def text(default: str, *, legal: str) -> Any:
    """A parameter that is any text, such as a path; commas only inside brackets, since it must be readable again."""

    def check(value: Any) -> None:
        if not isinstance(value, str):
            raise ValueError(f"must be {legal}")
        if value and not _readable(value):
            raise ValueError("cannot be written: no spaces at its ends, no comma outside brackets, brackets in pairs")

    return custom(default, Parameter(legal, str, str, check, "text"))


def expression(default: str, *, legal: str = "a method expression") -> Any:
    """A parameter that is itself an expression of the same kind (`to=vcpo`); the parser makes it canonical."""

    def check(value: Any) -> None:
        if not isinstance(value, str) or not value:
            raise ValueError(f"must be {legal}")

    def read(text: str) -> str:
        check(text)
        return text

    return custom(default, Parameter(legal, read, str, check, "expression"))


def parameter_of(made: Any) -> Parameter:
    """The parameter of a field that a function of this module made."""
    parameter: Parameter = made.metadata[KEY]
    return parameter


def legal_values(known: Mapping[str, Parameter]) -> str:
    """Parameters with their legal values, in one line for errors and listings."""
    return "; ".join(f"{name} ({parameter.legal})" for name, parameter in known.items()) or "no parameters"


def write_number(value: float) -> str:
    """The canonical spelling of a number: `8` for 8.0, `0.0003` for 3e-4."""
    if math.isfinite(value) and value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return repr(float(value))


def _readable(value: str) -> bool:
    """Whether a text that stands in an expression as `key=TEXT` is read as itself."""
    try:
        return [piece.strip().text for piece in split(value, Span(value), ",")] == [value]
    except ExpressionError:
        return False


def _metadata(parameter: Parameter) -> Mapping[str, Parameter]:
    return {KEY: parameter}


def _read_number(text: str) -> float:
    numerator, slash, denominator = text.partition("/")
    try:
        if not text.isascii() or "_" in text:  # digits of other scripts, and 1_000, are numbers for Python
            raise ValueError
        return float(numerator) / float(denominator) if slash else float(numerator)
    except (ValueError, ZeroDivisionError):
        raise ValueError("not a number") from None


def _inside(minimum: float | None, maximum: float | None, above: float | None, below: float | None) -> str:
    """The legal numbers as text: `a number from 0 to 1`, `a number above 0, at most 1`, `a number, 0 or more`."""
    low = "" if minimum is None else write_number(minimum)
    noun = "a finite number" if below == math.inf else "a number"
    below = None if below == math.inf else below
    if above is not None:
        upper = _upper_end(maximum, below)
        return f"{noun} above {write_number(above)}{f', {upper}' if upper else ''}"
    if below is not None:
        return f"a number {f'from {low} to ' if low else ''}below {write_number(below)}"
    if low and maximum is not None:
        return f"a number from {low} to {write_number(maximum)}"
    if low:
        return f"{noun}, {low} or more"
    return noun if maximum is None else f"a number, {write_number(maximum)} or less"


def _upper_end(maximum: float | None, below: float | None) -> str:
    if below is not None:
        return f"below {write_number(below)}"
    return "" if maximum is None else f"at most {write_number(maximum)}"
