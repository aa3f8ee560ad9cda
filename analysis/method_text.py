"""Recorded method expressions taken apart. Those of a stranger's results may follow no grammar: they are names only."""

from __future__ import annotations

from vcpo_bench.naming.errors import ExpressionError
from vcpo_bench.naming.grammar import NamedItem, Span, first_name, read_items, split


def base_name(method: str) -> str:
    """The name that an expression begins with, such as `clip` for `clip(high=0.28)+ess`; else the whole text."""
    try:
        return first_name(method)
    except ExpressionError:
        return method


def items_of(method: str) -> list[NamedItem]:
    """The method and its parts; none if the text is no expression."""
    try:
        return read_items(method)
    except ExpressionError:
        return []


def parts_of(method: str) -> list[str]:
    """The texts of the method and its parts; the whole text if it is no expression."""
    if not items_of(method):
        return [method]
    return [part.strip().text for part in split(method, Span(method), "+")]
