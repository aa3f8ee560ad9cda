r"""Numbers in answers, exactly: `3\frac{1}{2}`, `0.\overline{3}`, `1,234.50`, `3*10^{5}`, `12\text{cm}^{2}`.

All expressions here are read from one spelling (`latex.one_spelling`).
"""

import re
from fractions import Fraction

MAX_DIGITS = 100
_MAX_EXPONENT = 100

_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)")
_REPEATING = re.compile(r"([+-]?)(\d*)\.(\d*)\\overline\{(\d+)\}")
_SCIENTIFIC = re.compile(r"([+-]?\d+(?:\.\d+)?)\*10\^\{([+-]?\d{1,3})\}")
_MIXED = re.compile(r"([+-]?)(\d+)\\frac\{(\d+)\}\{(\d+)\}")
_RATIO = re.compile(r"([^/]+)/([^/]+)")
_UNIT = re.compile(
    r"(?:\\text\{[^{}\d]*\}|(?:dollars?|cents?|degrees?|percent|units?|square|cubic|inch(?:es)?|feet|foot|ft|yards?|miles?"
    r"|mph|mm|cm|km|meters?|centimeters?|kilometers?|seconds?|minutes?|hours?|days?|weeks?|months?|years?|grams?|kg"
    r"|pounds?|ounces?|liters?|people|ways)+)(?:\^\{[23]\})?\Z"
)


def number(text: str) -> Fraction | None:
    """The exact value of a number, a unit after it ignored; None if the text is anything else."""
    if len(text) > MAX_DIGITS:
        return None
    value = _plain(text)
    if value is None and (unit := _UNIT.search(text)) and unit.start():
        return _plain(text[: unit.start()])
    return value


def _plain(text: str) -> Fraction | None:
    if _DECIMAL.fullmatch(text):
        return Fraction(text.rstrip("."))
    if _THOUSANDS.fullmatch(text):
        return Fraction(text.replace(",", ""))
    if match := _SCIENTIFIC.fullmatch(text):
        exponent = int(match[2])
        return Fraction(match[1]) * Fraction(10) ** exponent if abs(exponent) <= _MAX_EXPONENT else None
    if match := _MIXED.fullmatch(text):
        part = _quotient(Fraction(match[3]), Fraction(match[4]))
        return None if part is None else _signed(match[1], Fraction(match[2]) + part)
    if match := _REPEATING.fullmatch(text):
        return _repeating(*match.groups())
    return _fraction(text)


def _fraction(text: str) -> Fraction | None:
    r"""`a/b` and `\frac{a}{b}` of numbers, a sign before it allowed."""
    sign, text = (text[0], text[1:]) if text[:1] in ("+", "-") else ("", text)
    if ratio := _RATIO.fullmatch(text):
        parts: tuple[str, str] | None = (ratio[1], ratio[2])
    else:
        parts = frac_parts(text)
    if parts is None:
        return None
    top, bottom = (_plain(part.removeprefix("(").removesuffix(")")) for part in parts)
    value = None if top is None or bottom is None else _quotient(top, bottom)
    return None if value is None else _signed(sign, value)


def frac_parts(text: str) -> tuple[str, str] | None:
    r"""Numerator and denominator if the whole text is one `\frac{a}{b}`."""
    if not text.startswith(r"\frac{"):
        return None
    top_end = group_end(text, 5)
    if top_end < 0 or group_end(text, top_end) != len(text):
        return None
    return text[6 : top_end - 1], text[top_end + 1 : -1]


def group_end(text: str, start: int) -> int:
    """Where the brace group that opens at `start` ends (one past its brace); -1 if none opens or closes."""
    if not text.startswith("{", start):
        return -1
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] == "{") - (text[place] == "}")
        if depth == 0:
            return place + 1
    return -1


def _repeating(sign: str, whole: str, fixed: str, period: str) -> Fraction:
    r"""`0.1\overline{6}`: all digits up to the period's end, less those before it, over 99...90...0."""
    before = int(whole + fixed or "0")
    value = Fraction(int(whole + fixed + period) - before, (10 ** len(period) - 1) * 10 ** len(fixed))
    return _signed(sign, value)


def _quotient(top: Fraction, bottom: Fraction) -> Fraction | None:
    return top / bottom if bottom else None


def _signed(sign: str, value: Fraction) -> Fraction:
    return -value if sign == "-" else value
