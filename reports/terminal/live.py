"""Views of a running grid: a live table on a terminal, plain lines elsewhere, or silence.

Each view takes the run events that `bench` declares as `GridObserver`; the rooms share only these plain types.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from vcpo_bench.reports.formatting import duration
from vcpo_bench.reports.terminal.progress import FAILED, GridProgress

Clock = Callable[[], float]

REFRESH_SECONDS = 0.2
BAR_WIDTH = 14
OVERALL_SECONDS = 10.0


class View(Protocol):
    """The run events, as `vcpo_bench.bench.running.observers.GridObserver` documents them."""

    def begin(self, cells: Sequence[tuple[str, str]], already_done: int) -> None:
        """The (key, label) of the cells about to run."""

    def started(self, key: str, label: str, steps: int) -> None:
        """A cell began."""

    def progress(self, key: str, step: int, reward: float, ess: float) -> None:
        """`step` updates are done."""

    def ended(self, key: str, status: str, seconds: float, reason: str) -> None:
        """A cell ended."""

    def message(self, text: str) -> None:
        """One line for the user."""

    def close(self) -> None:
        """No more events."""


class QuietView:
    """Shows nothing."""

    def begin(self, cells: Sequence[tuple[str, str]], already_done: int) -> None:
        """Ignored."""

    def started(self, key: str, label: str, steps: int) -> None:
        """Ignored."""

    def progress(self, key: str, step: int, reward: float, ess: float) -> None:
        """Ignored."""

    def ended(self, key: str, status: str, seconds: float, reason: str) -> None:
        """Ignored."""

    def message(self, text: str) -> None:
        """Ignored."""

    def close(self) -> None:
        """Ignored."""


class PlainView:
    """Plain lines for logs and pipes: one when a cell starts or ends, the overall state at most every 10 seconds."""

    def __init__(self, console: Console, clock: Clock = time.monotonic) -> None:
        self._console, self._clock = console, clock
        self._state = GridProgress()
        self._last_overall = clock()

    def begin(self, cells: Sequence[tuple[str, str]], already_done: int) -> None:
        """Say how much there is to do."""
        self._state.begin(cells, already_done)
        self._line(f"{len(cells)} cells to run" + (f", {already_done} done before" if already_done else ""))

    def started(self, key: str, label: str, steps: int) -> None:
        """Say that a cell began."""
        self._state.started(key, label, steps, self._clock())
        self._line(f"started   {label} ({steps} updates)")

    def progress(self, key: str, step: int, reward: float, ess: float) -> None:
        """Take note, and give the overall state when the last one is old."""
        self._state.progressed(key, step, reward, ess)
        now = self._clock()
        if now - self._last_overall >= OVERALL_SECONDS:
            self._last_overall = now
            self._line(self._state.summary(now))

    def ended(self, key: str, status: str, seconds: float, reason: str) -> None:
        """Say how a cell ended, and why when it did not complete."""
        self._state.finished(key, status, seconds)
        self._line(_ended_line(self._state, key, status, seconds, reason))

    def message(self, text: str) -> None:
        """Print the line."""
        self._line(text)

    def close(self) -> None:
        """Give the overall state a last time."""
        self._line(self._state.summary(self._clock()))

    def _line(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)


class LiveView:
    """A table of the running cells that redraws itself, above a line of counts and the time left."""

    def __init__(self, console: Console, clock: Clock = time.monotonic) -> None:
        self._console, self._clock = console, clock
        self._state = GridProgress()
        # Redrawn by events only: no second thread reads the state while it changes.
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._last_drawn = -math.inf

    def begin(self, cells: Sequence[tuple[str, str]], already_done: int) -> None:
        """Start drawing."""
        self._state.begin(cells, already_done)
        self._live.start()
        self._draw()

    def started(self, key: str, label: str, steps: int) -> None:
        """Add a row."""
        self._state.started(key, label, steps, self._clock())
        self._draw()

    def progress(self, key: str, step: int, reward: float, ess: float) -> None:
        """Move a row on."""
        self._state.progressed(key, step, reward, ess)
        if self._clock() - self._last_drawn >= REFRESH_SECONDS:
            self._draw()

    def ended(self, key: str, status: str, seconds: float, reason: str) -> None:
        """Take the row away; what did not complete leaves a line above the table."""
        self._state.finished(key, status, seconds)
        if status != "completed":
            style = "red" if status == FAILED else "yellow"
            self._console.print(Text(_ended_line(self._state, key, status, seconds, reason), style=style))
        self._draw()

    def message(self, text: str) -> None:
        """Print the line above the table."""
        self._console.print(Text(text))

    def close(self) -> None:
        """Stop drawing and leave the counts."""
        self._live.stop()
        self._console.print(Text(self._state.summary(self._clock())))

    def render(self) -> RenderableType:
        """What is on the screen now."""
        table = Table(box=None, padding=(0, 1), expand=False)
        room = max(self._console.width - BAR_WIDTH - 32, 8)
        table.add_column("running", no_wrap=True, overflow="ellipsis", max_width=room)
        table.add_column("", width=BAR_WIDTH)
        for heading, width in (("step", 9), ("reward", 6), ("ESS", 5)):
            table.add_column(heading, justify="right", min_width=width, no_wrap=True)
        for cell in self._state.running.values():
            bar = ProgressBar(total=max(cell.steps, 1), completed=cell.step, width=BAR_WIDTH)
            steps = f"{cell.step}/{cell.steps}"
            table.add_row(Text(cell.label, overflow="ellipsis"), bar, steps, _number(cell.reward), _number(cell.ess))
        summary = Text(self._state.summary(self._clock()), style="bold")
        return Group(table, summary) if self._state.running else summary

    def _draw(self) -> None:
        self._last_drawn = self._clock()
        self._live.update(self.render(), refresh=True)


def make_view(quiet: bool, console: Console) -> View:
    """The view that fits: silence if `quiet`, a live table on a terminal, plain lines otherwise.

    Args:
        quiet: Show nothing.
        console: Where to draw; its `is_terminal` decides (`TERM=dumb` counts as no terminal).
    """
    if quiet:
        return QuietView()
    if console.is_terminal and not console.is_dumb_terminal:
        return LiveView(console)
    return PlainView(console)


def _ended_line(state: GridProgress, key: str, status: str, seconds: float, reason: str) -> str:
    count = f"[{len(state.ended) + state.already_done}/{state.total}]"
    line = f"{status:<10}{state.labels.get(key, key)} in {duration(seconds)} {count}"
    return line if status == "completed" or not reason else f"{line}: {reason}"


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"
