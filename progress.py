"""How far a long computation is: loops say it, and whoever shows it listens. Nothing is shown unless somebody does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

T = TypeVar("T")


class Listener(Protocol):
    """Receives how far a loop is."""

    def advanced(self, what: str, done: int, total: int) -> None:
        """`done` of `total` items are finished; 0 when the loop begins, `total` when it has ended, also early."""


_listener: ContextVar[Listener | None] = ContextVar("vcpo_bench_progress", default=None)


def track(items: Iterable[T], what: str, total: int) -> Iterator[T]:
    """The items of a loop, one after another, each reported when its turn is over.

    Args:
        items: What the loop is over.
        what: What the loop does, such as `drawing figures`.
        total: How many items there are.
    """
    listener = _listener.get()
    if listener is None:
        yield from items
        return
    listener.advanced(what, 0, total)
    try:
        for done, item in enumerate(items, 1):
            yield item
            if done < total:
                listener.advanced(what, done, total)
    finally:  # also where whoever loops has enough
        listener.advanced(what, total, total)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Let somebody hear of every loop in the block."""
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)
