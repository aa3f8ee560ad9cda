"""Figures in a row that show the same methods share one legend."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Gallery(Generic[T]):
    """Figures under one legend.

    Attributes:
        figures: In order; often only one.
        legend: What their lines are; empty: nothing needs to be told apart.
    """

    figures: list[T]
    legend: list[str]


def in_galleries(blocks: Iterable[T], legend_of: Callable[[T], Sequence[str] | None]) -> list[T | Gallery[T]]:
    """The blocks of a section, its figures in galleries.

    Neighbors share a legend if one of them names all that the other does.

    Args:
        blocks: In order.
        legend_of: The legend of a figure, empty if it has none; None for what is no figure.
    """
    found: list[T | Gallery[T]] = []
    for block in blocks:
        legend = legend_of(block)
        if legend is None:
            found.append(block)
            continue
        last = found[-1] if found else None
        if isinstance(last, Gallery) and legend and last.legend and _nested(legend, last.legend):
            found[-1] = Gallery([*last.figures, block], max(last.legend, list(legend), key=len))
        else:
            found.append(Gallery([block], list(legend)))
    return found


def _nested(first: Sequence[str], second: Sequence[str]) -> bool:
    return set(first) <= set(second) or set(second) <= set(first)
