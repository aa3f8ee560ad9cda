"""A terminal and a clock for progress lines: a command takes as many seconds as a test says."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from rich.console import Console

from vcpo_bench.reports.terminal import progress_line

REAL = progress_line.ProgressLine


class SlowTerminal:
    """Stands where the error output is for the rest of the test; every loop of a command takes so many seconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float, terminal: bool = True) -> None:
        self._file = io.StringIO()
        self.console = Console(file=self._file, width=100, force_terminal=terminal, color_system=None)
        clock = SimpleNamespace(Timer=self._timer, RLock=threading.RLock)
        self._seconds = seconds
        monkeypatch.setattr(progress_line, "threading", clock)
        monkeypatch.setattr(progress_line, "time", SimpleNamespace(monotonic=lambda: 0.0))
        monkeypatch.setattr(progress_line, "ProgressLine", lambda _: REAL(self.console))

    def _timer(self, wait: float, act: Callable[[], None]) -> SimpleNamespace:
        due = wait <= self._seconds
        return SimpleNamespace(start=act if due else lambda: None, cancel=lambda: None)

    @property
    def shown(self) -> str:
        """Everything that was ever written to it."""
        return self._file.getvalue()
