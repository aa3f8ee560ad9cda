"""Arithmetic expressions from a model, read by a parser of our own: no text of a model is ever evaluated as code."""

import re
from fractions import Fraction
from typing import NamedTuple

MAX_LENGTH = 200
MAX_DEPTH = 20
_TOKEN = re.compile(r"[ \t]*(?:(0|[1-9][0-9]*)|([-+*/()]))[ \t]*")


class Evaluated(NamedTuple):
    """The exact value of an expression and the numbers in it, in the order they are written."""

    value: Fraction
    numbers: list[int]


def evaluate(text: str) -> Evaluated | None:
    """Value and numbers of whole numbers joined by `+ - * /` and parentheses, a sign before an operand allowed.

    None for anything else: other characters, `**`, `//`, a decimal point, leading zeros, an `=`, a division by
    zero, more than 200 characters or parentheses nested deeper than 20.
    """
    if len(text) > MAX_LENGTH or (tokens := _tokens(text)) is None:
        return None
    parser = _Parser(tokens)
    try:
        value = parser.total(0)
    except (_NoExpressionError, ZeroDivisionError):
        return None
    return Evaluated(value, parser.numbers) if parser.at_end() else None


def _tokens(text: str) -> list[str] | None:
    tokens, place = [], 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            return None
        tokens.append(match[1] or match[2])
        place = match.end()
    return tokens


class _NoExpressionError(ValueError):
    pass


class _Parser:
    """Recursive descent: a total of products of factors."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._place = 0
        self.numbers: list[int] = []

    def at_end(self) -> bool:
        return self._place == len(self._tokens)

    def total(self, depth: int) -> Fraction:
        value = self._product(depth)
        while sign := self._take("+-"):
            term = self._product(depth)
            value = value + term if sign == "+" else value - term
        return value

    def _product(self, depth: int) -> Fraction:
        value = self._factor(depth)
        while sign := self._take("*/"):
            factor = self._factor(depth)
            value = value * factor if sign == "*" else value / factor
        return value

    def _factor(self, depth: int) -> Fraction:
        if depth > MAX_DEPTH:
            raise _NoExpressionError
        if sign := self._take("+-"):
            return self._factor(depth + 1) * (-1 if sign == "-" else 1)
        if self._take("("):
            value = self.total(depth + 1)
            if not self._take(")"):
                raise _NoExpressionError
            return value
        if self.at_end() or not self._tokens[self._place].isdigit():
            raise _NoExpressionError
        self.numbers.append(int(self._tokens[self._place]))
        self._place += 1
        return Fraction(self.numbers[-1])

    def _take(self, tokens: str) -> str:
        """The next token if it is one of these."""
        if self.at_end() or self._tokens[self._place] not in tokens:
            return ""
        self._place += 1
        return self._tokens[self._place - 1]
