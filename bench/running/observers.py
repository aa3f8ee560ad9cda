"""What running cells tell whoever watches: `reports` draws a grid, `analysis` judges the updates of a cell.

Plain types keep the rooms apart; `cli` plugs one into the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol


class GridObserver(Protocol):
    """Receives the events of a grid, in the parent process."""

    def begin(self, cells: Sequence[tuple[str, str]], already_done: int) -> None:
        """Called once with the (key, label) of the cells about to run, longest first."""

    def started(self, key: str, label: str, steps: int) -> None:
        """A worker began (or took up again) a cell."""

    def progress(self, key: str, step: int, reward: float, ess: float) -> None:
        """`step` updates are done; sampled reward and raw ESS ratio of the latest."""

    def ended(self, key: str, status: str, seconds: float, reason: str) -> None:
        """A cell ended with a `records.Status`."""

    def message(self, text: str) -> None:
        """One line the user should see."""

    def close(self) -> None:
        """No more events will come."""


class StepObserver(Protocol):
    """Watches the updates of one cell, in the worker that trains it, and may end it.

    What it says may depend on the rows it was given and on nothing else: a run that is taken up shows a fresh observer
    all rows recorded before, so that it stops at the same update as one that was never interrupted.
    """

    def observe(self, row: Mapping[str, Any]) -> str:
        """Take the row of `records.STEPS` just recorded. A non-empty answer ends the cell; it says why."""


Watch = Callable[[str], StepObserver]
"""Makes the observer that the `stop` of a cell describes. Sent to workers by name, so it lies at module level."""
