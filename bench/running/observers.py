"""Events of a running grid, for whoever displays them. Plain types, so that `reports` need not import `bench`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class GridObserver(Protocol):
    """Receives the events of a grid, in the parent process."""

    def begin(self, cells: Sequence[tuple[str, str]], already_done: int) -> None:
        """Called once with the (key, label) of the cells about to run, longest first."""

    def started(self, key: str, label: str, steps: int) -> None:
        """A worker started or resumed a cell."""

    def progress(self, key: str, step: int, reward: float, ess: float) -> None:
        """`step` updates are done; sampled reward and raw ESS ratio of the latest."""

    def ended(self, key: str, status: str, seconds: float, reason: str) -> None:
        """A cell ended with a `records.Status`."""

    def warned(self, text: str) -> None:
        """A cell gave a warning; others may give the same, with other numbers."""

    def message(self, text: str) -> None:
        """One line the user should see."""

    def close(self) -> None:
        """No more events will come."""
