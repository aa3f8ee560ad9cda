r"""When two answers to a competition problem are the same. Strict, exact, and in bounded time.

Equal are: spellings of one LaTeX expression; numbers of one exact value (0.5 and 1/2, but not 0.33 and 1/3); sums and
products of one number with one rest in any order of the terms; lists and sets in any order; tuples, intervals and
matrices element by element. Nothing is evaluated: `2^{10}` is not 1024, `\sqrt{4}` is not 2, `(x+1)^2` is not its
expansion, because a response that restates the problem would then be right. Units, `\%` and degrees are ignored.
"""

import re
from collections.abc import Iterable
from fractions import Fraction

from vcpo_bench.bench.tasks.text.scoring.exact_numbers import frac_parts, group_end, number
from vcpo_bench.bench.tasks.text.scoring.latex import TooDeepError, one_spelling

MAX_ANSWER = 1000
"""Characters of the longest answer that is looked at."""

Value = tuple[object, ...]

_NAMED = re.compile(r"(\\?[A-Za-z]+ ?(?:_\{\w+\})?(?:\([A-Za-z]\))?(?:=|\\in ))")
_RELATION = re.compile(r"[=<>]|\\(?:le|ge|ne|in|pm) ")
_LEADING = re.compile(r"\d+(?:\.\d+)?")
_JOINED = re.compile(r"\\text\{(?:and|or)\}")
_UNIT = re.compile(r"\\text\{[^{}\d]*\}(?:\^\{[23]\})?\Z")
_NOT_A_FACTOR = ("^", "_", "!", ".", "*", "\\overline")


def same_answer(gold: str, answer: str) -> bool:
    """Whether two answers are the same; symmetric, and never raises."""
    if max(len(gold), len(answer)) > MAX_ANSWER:
        return False
    if gold.strip() == answer.strip():
        return bool(gold.strip())
    try:
        return bool(_value(_cleaned(gold)) == _value(_cleaned(answer)) != ())
    except TooDeepError:
        return False


def _cleaned(answer: str) -> str:
    """One spelling; products without a sign wherever it changes nothing; no full stop at the end."""
    text = _JOINED.sub(",", one_spelling(answer))
    text = re.sub(r"\*(?!\d)", "", text)
    return text.rstrip(".") if text.rstrip(".") else text


def _value(text: str, depth: int = 0) -> Value:
    """A nested tuple that is equal for equal answers; an empty one for an empty answer."""
    if depth > 30:
        raise TooDeepError
    if not text:
        return ()
    if (exact := number(text)) is not None:
        return ("number", exact)
    parts = _split(text, ",")
    if len(parts) > 1:
        return ("set", *_unordered(_listed(parts, depth)))
    name, text = _named(text)
    if name:
        return _value(text, depth + 1)
    union = _split(text, r"\cup ")
    if len(union) > 1:
        return ("union", *_unordered(_value(part, depth + 1) for part in union))
    return _bracketed(text, depth) or _sum(_unwrapped_words(text))


def _bracketed(text: str, depth: int) -> Value | None:
    """Tuples, intervals, sets, matrices and plain parentheses; None if no one pair of brackets holds all."""
    if text.startswith(r"\{") and text.endswith(r"\}") and _holds_all(text[1:]):
        return ("set", *_unordered(_value(part, depth + 1) for part in _split(text[2:-2], ",")))
    if text[0] in "([" and text[-1] in ")]" and _holds_all(text):
        parts = _split(text[1:-1], ",")
        if len(parts) == 1 and (text[0], text[-1]) == ("(", ")"):
            return _value(parts[0], depth + 1)
        return ("tuple", text[0], text[-1], *(_value(part, depth + 1) for part in parts))
    if match := re.match(r"\\begin\{(\w*matrix)\}", text):
        end = rf"\end{{{match[1]}}}"
        if text.find(end) == len(text) - len(end):
            rows = text[match.end() : -len(end)].removesuffix("\\\\").split("\\\\")
            cells = (tuple(_value(cell, depth + 1) for cell in row.split("&")) for row in rows)
            return ("matrix", match[1], *cells)
    return None


def _sum(text: str) -> Value:
    """Terms in one order, each a rational coefficient and a rest; relations and the like stay text."""
    if _RELATION.search(text):
        return ("text", text)
    terms = [_term(sign, term) for sign, term in _signed_terms(text)]
    return ("sum", *_unordered(terms))


def _signed_terms(text: str) -> list[tuple[int, str]]:
    terms, sign, start = [], 1, 0
    for place in [*_top_level(text, "+-"), len(text)]:
        if place > start:
            terms.append((sign, text[start:place]))
            sign = 1
        if text[place : place + 1] == "-":
            sign = -sign
        start = place + 1
    return terms


def _term(sign: int, text: str) -> tuple[Fraction, str]:
    r"""Coefficient and rest: `\frac{2\pi}{3}` and `\frac{2}{3}\pi` are both (2/3, \pi)."""
    coefficient, rest = Fraction(sign), text
    if (exact := number(rest)) is not None:
        return coefficient * exact, ""
    sides = _split(rest, "/")
    if len(sides) == 2 and all(sides):
        rest = "\\frac{" + "}{".join(_without_parentheses(side) for side in sides) + "}"
    factor, rest = _leading_factor(rest)
    if rest.startswith(r"\frac{"):
        end = group_end(rest, group_end(rest, 5))
        parts = frac_parts(rest[: max(end, 0)])
        bottom = number(parts[1]) if parts else None
        above = parts[0].removeprefix("-") if parts else ""
        if parts and bottom and not rest[end:].startswith(_NOT_A_FACTOR) and not _top_level(above, "+-"):
            exact = number(above)
            top, words = (exact, "") if exact is not None else _leading_factor(above)
            return coefficient * factor * top / (bottom if above == parts[0] else -bottom), words + rest[end:]
    return coefficient * factor, rest


def _leading_factor(text: str) -> tuple[Fraction, str]:
    """The number a product begins with and the rest; 1 and everything where the number is not a plain factor."""
    match = _LEADING.match(text)
    if match is None or len(match[0]) > 100 or text[match.end() :].startswith((*_NOT_A_FACTOR, "\\frac", "\\text")):
        return Fraction(1), text
    return Fraction(match[0]), text[match.end() :]


def _listed(parts: list[str], depth: int) -> list[Value]:
    r"""`x=1` and `x=2` as 1 and 2; in `x=1` and `y=2` the names stay, the values are not interchangeable."""
    named = [_named(part) for part in parts]
    if len({name for name, _ in named}) == 1:
        return [_value(part, depth + 1) for _, part in named]
    return [("named", name, _value(part, depth + 1)) for name, part in named]


def _named(text: str) -> tuple[str, str]:
    r"""`x=` and what is said of x; also `x\in`."""
    match = _NAMED.match(text)
    return (match[1], text[match.end() :]) if match else ("", text)


def _unwrapped_words(text: str) -> str:
    r"""Words as text; those after a quantity, such as `21\pi\text{cm}^{3}`, are its unit and go."""
    unit = _UNIT.search(text)
    if unit and any(character.isdigit() for character in text[: unit.start()]):
        text = text[: unit.start()]
    return re.sub(r"\\text\{([^{}]*)\}", r"\1", text)


def _without_parentheses(text: str) -> str:
    return text[1:-1] if text[0] == "(" and text[-1] == ")" and _holds_all(text) else text


def _unordered(values: Iterable[Value]) -> list[Value]:
    return sorted(values, key=repr)


def _split(text: str, separator: str) -> list[str]:
    """Pieces between the separators that are outside all brackets."""
    pieces, start = [], 0
    for place in _top_level(text, separator[0]):
        if text.startswith(separator, place):
            pieces.append(text[start:place])
            start = place + len(separator)
    return [*pieces, text[start:]]


def _top_level(text: str, characters: str) -> list[int]:
    """Places of the characters outside all brackets."""
    places, depth = [], 0
    for place, character in enumerate(text):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif depth == 0 and character in characters:
            places.append(place)
    return places


def _holds_all(text: str) -> bool:
    """The bracket that opens first closes last."""
    depth = 0
    for place, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if depth == 0:
            return place == len(text) - 1
    return False
