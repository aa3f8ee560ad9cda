"""The one grammar of everything a user can name: `NAME(key=value,...)`, joined with `+` where parts can be added.

    expression = item {"+" item}
    item       = name [":" word] ["(" [argument {"," argument}] ")"]
    argument   = [key "="] value; a value without a key belongs to the first parameter
    value      = number | fraction such as 1/8 | word | path | [list in brackets] | nested expression

Spaces around signs do not matter. Errors point at the character.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from vcpo_bench.naming.errors import ExpressionError

_OPEN, _CLOSE = "([", ")]"


@dataclass(frozen=True)
class Piece:
    """A stretch of an expression.

    Attributes:
        text: Its characters.
        start: Index of the first of them in the whole expression.
    """

    text: str
    start: int = 0

    def strip(self) -> Piece:
        """The same without spaces at its ends."""
        left = len(self.text) - len(self.text.lstrip())
        return Piece(self.text.strip(), self.start + left)

    def cut(self, begin: int, end: int | None = None) -> Piece:
        """The stretch from `begin` to `end`, counted from its own start."""
        return Piece(self.text[begin:end], self.start + begin)


class Argument(NamedTuple):
    """One argument: its key, None where only a value is written, and its value."""

    key: Piece | None
    value: Piece


@dataclass(frozen=True)
class Item:
    """One named item of an expression.

    Attributes:
        name: What is named.
        suffix: The word after a colon (`paper` in `vespo:paper`), or None.
        arguments: What stands between its parentheses, in order.
    """

    name: Piece
    suffix: Piece | None
    arguments: tuple[Argument, ...]


def read_items(text: str, piece: Piece | None = None) -> list[Item]:
    """The items of an expression, which are joined with `+`.

    Args:
        text: The whole expression, for errors to point into.
        piece: The stretch to read; all of `text` if None.

    Raises:
        ExpressionError: It does not follow the grammar.
    """
    return [read_item(text, part) for part in split(text, piece or Piece(text), "+")]


def read_item(text: str, piece: Piece | None = None) -> Item:
    """One item: `NAME`, `NAME:word`, `NAME(key=value,...)`.

    Args:
        text: The whole expression, for errors to point into.
        piece: The stretch to read; all of `text` if None.

    Raises:
        ExpressionError: It does not follow the grammar.
    """
    piece = (piece or Piece(text)).strip()
    head, bracket, _ = piece.text.partition("(")
    name, colon, _ = head.partition(":")
    if not name.strip():
        raise ExpressionError(text, piece.start, "a name is missing")
    if not bracket:
        inner = Piece("", piece.start)
    elif (closing := _closing(piece.text, len(head))) is None:
        raise ExpressionError(text, piece.start + len(head), "this '(' is never closed")
    elif closing != len(piece.text) - 1:
        end = piece.start + closing + 1
        raise ExpressionError(text, end, f"expected '+' or the end after {name.strip()!r}")
    else:
        inner = piece.cut(len(head) + 1, -1)
    arguments = [_argument(part.strip()) for part in split(text, inner, ",")] if inner.text.strip() else []
    after = piece.cut(len(name) + 1, len(head)).strip() if colon else None
    return Item(piece.cut(0, len(name)).strip(), after, tuple(arguments))


def split(text: str, piece: Piece, separator: str) -> list[Piece]:
    """Cut at the separators that are outside brackets.

    Args:
        text: The whole expression, for errors to point into.
        piece: The stretch to cut.
        separator: One character.

    Raises:
        ExpressionError: Brackets do not match, or there is nothing between two separators.
    """
    open_at: list[int] = []
    begin = 0
    found: list[Piece] = []
    for index, character in enumerate(piece.text):
        if character in _OPEN:
            open_at.append(index)
        elif character in _CLOSE:
            if not open_at or _OPEN.index(piece.text[open_at[-1]]) != _CLOSE.index(character):
                raise ExpressionError(text, piece.start + index, f"unexpected {character!r}")
            open_at.pop()
        elif character == separator and not open_at:
            found.append(piece.cut(begin, index))
            begin = index + 1
    if open_at:
        raise ExpressionError(text, piece.start + open_at[0], f"this {piece.text[open_at[0]]!r} is never closed")
    found.append(piece.cut(begin))
    for each in found:
        if not each.text.strip():
            raise ExpressionError(text, each.start, f"something is missing around {separator!r}")
    return found


def split_list(text: str) -> list[str]:
    """The expressions of a comma-separated list; commas inside brackets do not separate.

    Raises:
        ExpressionError: For brackets that do not match or an empty item.
    """
    return [piece.strip().text for piece in split(text, Piece(text), ",")]


def closest(name: str, candidates: Iterable[str]) -> str:
    """`; did you mean x or y?`, or an empty string when nothing is close."""
    close = difflib.get_close_matches(name, list(candidates), n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(close)}?" if close else ""


def _argument(piece: Piece) -> Argument:
    key, equals, _ = piece.text.partition("=")
    if not equals or any(bracket in key for bracket in _OPEN):
        return Argument(None, piece)
    return Argument(Piece(key, piece.start).strip(), piece.cut(len(key) + 1).strip())


def _closing(text: str, opening: int) -> int | None:
    """Where the bracket that opens at `opening` is closed."""
    depth = 0
    for index in range(opening, len(text)):
        depth += (text[index] in _OPEN) - (text[index] in _CLOSE)
        if depth == 0:
            return index
    return None
