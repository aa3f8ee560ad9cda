"""The one grammar of everything a user can name: `NAME(key=value,...)`, joined with `+` where parts can be added.

    expression = item {"+" item}
    item       = name [":" word] ["(" [argument {"," argument}] ")"]
    argument   = [key "="] value; the first value may lack its key and then belongs to the first parameter
    value      = number | fraction such as 1/8 | word | path | [list in brackets] | nested expression

Spaces around signs do not matter. Errors point at the character.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from vcpo_bench.naming.errors import ExpressionError

_PAIRS = {"(": ")", "[": "]"}
DEEPEST = 16
"""Brackets that may stand in one another; expressions are read recursively."""


@dataclass(frozen=True)
class Span:
    """A stretch of an expression.

    Attributes:
        text: Its characters.
        start: Index of the first of them in the whole expression.
    """

    text: str
    start: int = 0

    def strip(self) -> Span:
        """The same without spaces at its ends."""
        left = len(self.text) - len(self.text.lstrip())
        return Span(self.text.strip(), self.start + left)

    def cut(self, begin: int, end: int | None = None) -> Span:
        """The stretch from `begin` to `end`, counted from its own start."""
        return Span(self.text[begin:end], self.start + begin)


class Argument(NamedTuple):
    """One argument: its key, None where only a value is written, and its value."""

    key: Span | None
    value: Span


@dataclass(frozen=True)
class NamedItem:
    """One named item of an expression.

    Attributes:
        name: What is named.
        suffix: The word after a colon (`paper` in `vespo:paper`), or None.
        arguments: What stands between its parentheses, in order.
    """

    name: Span
    suffix: Span | None
    arguments: tuple[Argument, ...]


def read_items(text: str, piece: Span | None = None) -> list[NamedItem]:
    """The items of an expression, which are joined with `+`.

    Args:
        text: The whole expression, for errors to point into.
        piece: The stretch to read; all of `text` if None.

    Raises:
        ExpressionError: It does not follow the grammar.
    """
    return [read_item(text, part) for part in split(text, piece or Span(text), "+")]


def read_item(text: str, piece: Span | None = None) -> NamedItem:
    """One item: `NAME`, `NAME:word`, `NAME(key=value,...)`.

    Args:
        text: The whole expression, for errors to point into.
        piece: The stretch to read; all of `text` if None.

    Raises:
        ExpressionError: It does not follow the grammar.
    """
    piece = (piece or Span(text)).strip()
    outside = list(_outside(text, piece))
    opening = next((index for index, character in outside if character == "("), len(piece.text))
    after = next((index for index, _ in outside if index > opening), None)
    if after is not None:
        raise ExpressionError(
            text, piece.start + after, f"unexpected {piece.text[after]!r} after {piece.text[:after]!r}"
        )
    head, inner = piece.cut(0, opening), piece.cut(opening + 1, -1)
    name, colon, _ = head.text.partition(":")
    if not name.strip():
        raise ExpressionError(text, piece.start, "a name is missing")
    suffix = head.cut(len(name) + 1).strip() if colon else None
    arguments = [_argument(part.strip()) for part in split(text, inner, ",")] if inner.text.strip() else []
    return NamedItem(head.cut(0, len(name)).strip(), suffix, tuple(arguments))


def first_name(text: str) -> str:
    """The name that an expression begins with: `clip` for `clip(high=0.28)+ess`.

    Raises:
        ExpressionError: It does not follow the grammar.
    """
    return read_items(text)[0].name.text


def split(text: str, piece: Span, separator: str) -> list[Span]:
    """Cut at the separators that are outside brackets.

    Args:
        text: The whole expression, for errors to point into.
        piece: The stretch to cut.
        separator: One character.

    Raises:
        ExpressionError: Brackets do not match, or there is nothing between two separators.
    """
    cuts = [index for index, character in _outside(text, piece) if character == separator]
    found = [piece.cut(begin, end) for begin, end in zip([0, *(cut + 1 for cut in cuts)], [*cuts, None], strict=True)]
    for each in found:
        if not each.text.strip():
            missing = f"something is missing around {separator!r}" if cuts else "an expression is missing"
            raise ExpressionError(text, each.start, missing)
    return found


def split_list(text: str) -> list[str]:
    """The expressions of a comma-separated list; commas inside brackets do not separate.

    Raises:
        ExpressionError: For brackets that do not match or an empty item.
    """
    return [piece.strip().text for piece in split(text, Span(text), ",")]


def closest(name: str, candidates: Iterable[str]) -> str:
    """`; did you mean x or y?`, or an empty string when nothing is close."""
    close = difflib.get_close_matches(name.lower(), list(candidates), n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(close)}?" if close else ""


def unknown_name(word: str, name: str, known: Iterable[str]) -> str:
    """What to say of a name that does not exist.

    Args:
        word: What it should have named: `method`, `task` ...
        name: What was written.
        known: The names there are.
    """
    names = sorted(set(known))
    close = closest(name, names)
    return f"unknown {word} {name!r}{f'{close} Known' if close else '; known'}: {', '.join(names)}"


def _argument(piece: Span) -> Argument:
    key, equals, _ = piece.text.partition("=")
    if not equals or any(bracket in key for bracket in _PAIRS):
        return Argument(None, piece)
    return Argument(Span(key, piece.start).strip(), piece.cut(len(key) + 1).strip())


def _outside(text: str, piece: Span) -> Iterator[tuple[int, str]]:
    """The characters outside brackets with their indices in the piece; of a pair of brackets only the opening one.

    Raises:
        ExpressionError: Brackets do not match.
    """
    open_at: list[int] = []
    for index, character in enumerate(piece.text):
        if not open_at and character not in _PAIRS.values():
            yield index, character
        if character in _PAIRS:
            open_at.append(index)
            if len(open_at) > DEEPEST:
                raise ExpressionError(text, piece.start + index, f"more than {DEEPEST} brackets in one another")
        elif character in _PAIRS.values() and (not open_at or _PAIRS[piece.text[open_at.pop()]] != character):
            raise ExpressionError(text, piece.start + index, f"unexpected {character!r}")
    if open_at:
        raise ExpressionError(text, piece.start + open_at[0], f"this {piece.text[open_at[0]]!r} is never closed")
