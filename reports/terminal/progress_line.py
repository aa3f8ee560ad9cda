"""One line on a terminal that says how far a long command is, and how much time is left."""

from __future__ import annotations

import sys
import threading
import time
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
PAUSE = 0.2
"""Seconds that a later loop takes before the line comes back: quick loops would only flicker."""


class ProgressLine:
    """Shows `vcpo_bench.progress` on a terminal; on anything else, nothing.

    Of loops inside each other it shows the innermost. Outside of loops there is no line: answers are printed there.

    Args:
        console: Where to show it.
        patience: Seconds before the line appears, from the first loop on.
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
        # What is printed during a loop goes above the line, unless it goes to a file or a pipe.
        to_terminal = sys.stdout.isatty()
        self._shown = Progress(*columns, console=console, transient=True, redirect_stdout=to_terminal)
        self._enabled = console.is_terminal
        self._patience = patience
        self._begun: float | None = None
        self._timer: threading.Timer | None = None
        self._loops: dict[str, TaskID] = {}
        self._lock = threading.RLock()

    def __enter__(self) -> ProgressLine:
        return self

    def advanced(self, what: str, done: int, total: int) -> None:
        """See `vcpo_bench.progress.Listener`."""
        if not self._enabled or not total:
            return
        with self._lock:
            self._leave_inside(what)
            if done >= total:
                self._leave(what)
            elif what in self._loops:
                self._shown.update(self._loops[what], completed=done)
            else:
                self._enter(what, done, total)

    def _enter(self, what: str, done: int, total: int) -> None:
        for outer in self._loops.values():
            self._shown.update(outer, visible=False)
        self._loops[what] = self._shown.add_task(what, completed=done, total=total)
        if self._timer is None:
            now = time.monotonic()
            self._begun = now if self._begun is None else self._begun
            wait = max(self._begun + self._patience - now, min(PAUSE, self._patience))
            self._timer = threading.Timer(wait, self._appear)
            self._timer.daemon = True
            self._timer.start()

    def _leave_inside(self, what: str) -> None:
        """Forget loops inside this one that never said that they have ended."""
        if what in self._loops:
            for inner in list(self._loops)[list(self._loops).index(what) + 1 :]:
                self._leave(inner)

    def _leave(self, what: str) -> None:
        task = self._loops.pop(what, None)
        if task is None:
            return
        if self._loops:
            self._shown.update(next(reversed(self._loops.values())), visible=True)
        else:
            self._disappear()
        self._shown.remove_task(task)

    def _disappear(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._shown.live.is_started:
            self._shown.stop()

    def _appear(self) -> None:
        with self._lock:
            if self._loops:
                self._shown.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            for what in list(self._loops):
                self._leave(what)
