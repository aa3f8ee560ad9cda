"""One line on a terminal that says how far a long command is, and how much time is left."""

from __future__ import annotations

import threading
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

PATIENCE = 2.0
"""Seconds before the line appears: a quick command shows nothing."""


class ProgressLine:
    """Shows `vcpo_bench.progress` on a terminal; on anything else, nothing.

    Args:
        console: Where to show it.
        patience: Seconds before the line appears.
    """

    def __init__(self, console: Console, patience: float = PATIENCE) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        self._shown = Progress(*columns, console=console, transient=True)
        self._enabled = console.is_terminal
        self._patience = patience
        self._timer: threading.Timer | None = None
        self._tasks: dict[str, TaskID] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> ProgressLine:
        return self

    def advanced(self, what: str, done: int, total: int) -> None:
        """See `vcpo_bench.progress.Listener`."""
        if not self._enabled or not total:
            return
        with self._lock:
            if self._timer is None:
                self._timer = threading.Timer(self._patience, self._shown.start)
                self._timer.daemon = True
                self._timer.start()
            if what not in self._tasks or done == 0:
                for other in self._tasks.values():
                    self._shown.update(other, visible=False)
                self._tasks[what] = self._shown.add_task(what, total=total)
            self._shown.update(self._tasks[what], completed=done)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
            self._shown.stop()
