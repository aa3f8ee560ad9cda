"""How far a long computation is: loops and grids say it, whoever shows it listens. Else nothing is shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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


class GridObserver:
    """Receives the events of a running grid, in order, from one thread of the parent process. This one ignores them."""

    def begin(self, cells: Sequence[tuple[str, str]], already_done: int) -> None:
        """Called once with the (key, label) of the cells about to run, longest first."""

    def started(self, key: str, label: str, steps: int) -> None:
        """A worker started or resumed a cell, which takes `steps` updates."""

    def progress(self, key: str, step: int, reward: float, ess: float) -> None:
        """`step` updates are done; sampled reward and raw ESS ratio of the latest, NaN where there is none."""

    def ended(self, key: str, status: str, seconds: float, reason: str) -> None:
        """A cell ended with a `records.Status` after `seconds`; `reason` says why if it did not complete."""

    def warned(self, text: str) -> None:
        """A cell gave a warning; others may give the same, with other numbers."""

    def message(self, text: str) -> None:
        """One line the user should see."""

    def close(self) -> None:
        """No more events will come."""
