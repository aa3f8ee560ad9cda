"""What may end a cell early: an observer of every recorded update, provided by `analysis`, plugged in by `commands`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Protocol


class StepObserver(Protocol):
    """Watches the updates of one cell, in the worker that trains it, and may end it.

    Its answers may depend only on the rows it was given. A resumed cell shows a fresh observer all rows recorded
    before, so that it stops at the same update as a cell that was never interrupted.
    """

    @abstractmethod
    def observe(self, row: Mapping[str, Any]) -> str:
        """Receive the row of `records.steps.STEPS` just recorded.

        Returns:
            Why the cell should end now; empty: it goes on.
        """


ObserverFactory = Callable[[str], StepObserver]
"""Makes the observer described by a cell's `stop`. Pickled by name for workers, so it must be at module level."""
