"""Views of a running grid: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from vcpo_bench.analysis.wording import counted
from vcpo_bench.progress import GridObserver
from vcpo_bench.reports.formatting import duration
from vcpo_bench.reports.terminal.progress import FAILED, GridProgress

Clock = Callable[[], float]

REFRESH_SECONDS = 0.2
"""Shortest time between two redraws of the live table."""
SUMMARY_SECONDS = 10.0
"""Shortest time between two summary lines of the plain view."""
BAR_WIDTH = 14
NUMBERS_WIDTH = 30  # of step, reward and ESS, and the space around the columns


class _View(GridObserver):
    """What both views keep: where to print, the time, and the state of the grid."""

    def __init__(self, console: Console, clock: Clock = time.monotonic) -> None:
        self._console, self._clock = console, clock
        self._state = GridProgress()

    def _ended_line(self, key: str, status: str, seconds: float, reason: str) -> str:
        """How a cell ended, which the state then knows."""
        state = self._state
        state.finished(key, status, seconds)
        count = f"[{len(state.ended) + state.already_done}/{state.total}]"
        line = f"{status:<10}{state.labels.get(key, key)} in {duration(seconds)} {count}"
        return line if status == "completed" or not reason else f"{line}: {reason}"


class PlainView(_View):
    """Plain lines for logs and pipes: one when a cell starts or ends, and a summary that says something new.

    It comes at most every 10 seconds.
    """

    def __init__(self, console: Console, clock: Clock = time.monotonic) -> None:
        super().__init__(console, clock)
        self._last_summary, self._summary = clock(), ""

    def begin(self, cells: Sequence[tuple[str, str]], already_done: int) -> None:
        """Print how many cells there are to run."""
        self._state.begin(cells, already_done)
        self._line(f"{counted(len(cells), 'cell')} to run" + (f", {already_done} already done" if already_done else ""))

    def started(self, key: str, label: str, steps: int) -> None:
        """Print that a cell has started."""
        self._state.started(key, label, steps)
        self._line(f"started   {label} ({steps} updates)")

    def progress(self, key: str, step: int, reward: float, ess: float) -> None:
        """Record the progress, and print a summary if the last one is old enough."""
        now = self._clock()
        self._state.progressed(key, step, reward, ess, now)
        if now - self._last_summary >= SUMMARY_SECONDS:
            self._last_summary, before = now, self._summary
            self._summary = self._state.summary(now)
            if self._summary != before:
                self._line(self._summary)

    def ended(self, key: str, status: str, seconds: float, reason: str) -> None:
        """Print how a cell ended, and why if it did not complete."""
        self._line(self._ended_line(key, status, seconds, reason))

    def warned(self, text: str) -> None:
        """Print the warning, once."""
        if self._state.warns_anew(text):
            self._line(f"warning: {text}")

    def message(self, text: str) -> None:
        """Print the line."""
        self._line(text)

    def close(self) -> None:
        """Print the final summary."""
        self._line(self._state.summary(self._clock()))

    def _line(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)


class LiveView(_View):
    """A table of the running cells, redrawn in place, above a line of counts and the time left."""

    def __init__(self, console: Console, clock: Clock = time.monotonic) -> None:
        super().__init__(console, clock)
        # Only events redraw the table, so that no second thread reads the state while it changes.
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._last_drawn = -math.inf

    def begin(self, cells: Sequence[tuple[str, str]], already_done: int) -> None:
        """Start the live table."""
        self._state.begin(cells, already_done)
        self._live.start()
        self._draw()

    def started(self, key: str, label: str, steps: int) -> None:
        """Add the cell's row."""
        self._state.started(key, label, steps)
        self._draw()

    def progress(self, key: str, step: int, reward: float, ess: float) -> None:
        """Update the cell's row, at most five times per second."""
        self._state.progressed(key, step, reward, ess, self._clock())
        if self._clock() - self._last_drawn >= REFRESH_SECONDS:
            self._draw()

    def ended(self, key: str, status: str, seconds: float, reason: str) -> None:
        """Remove the cell's row; a cell that did not complete leaves a line above the table."""
        line = self._ended_line(key, status, seconds, reason)
        if status != "completed":
            self._console.print(Text(line, style="red" if status == FAILED else "yellow"))
        self._draw()

    def warned(self, text: str) -> None:
        """Print the warning above the table, once."""
        if self._state.warns_anew(text):
            self._console.print(Text(f"warning: {text}", style="yellow"))

    def message(self, text: str) -> None:
        """Print the line above the table."""
        self._console.print(Text(text))

    def close(self) -> None:
        """Replace the table by the final summary."""
        self._live.stop()
        self._console.print(Text(self._state.summary(self._clock())))

    def render(self) -> RenderableType:
        """The table and the summary line, as they are on the screen now."""
        table = Table(box=None, padding=(0, 1), expand=False)
        running = list(self._state.running.values())
        room = max(self._console.width - NUMBERS_WIDTH, 8)
        barred = max((len(cell.label) for cell in running), default=0) + BAR_WIDTH + 2 <= room
        table.add_column("running", no_wrap=True, overflow="ellipsis", max_width=room)
        if barred:  # elsewhere the bar would cut what tells one cell from another
            table.add_column("", width=BAR_WIDTH)
        for heading, width in (("step", 9), ("reward", 6), ("ESS", 5)):
            table.add_column(heading, justify="right", min_width=width, no_wrap=True)
        shown = max(self._console.height - 4, 1)
        for cell in running[:shown]:
            bar = [ProgressBar(total=max(cell.steps, 1), completed=cell.step, width=BAR_WIDTH)] if barred else []
            numbers = (f"{cell.step}/{cell.steps}", _number(cell.reward), _number(cell.ess))
            table.add_row(Text(cell.label, overflow="ellipsis"), *bar, *numbers)
        if more := len(running[shown:]):
            table.add_row(f"and {more} more")
        summary = Text(self._state.summary(self._clock()), style="bold")
        return Group(table, summary) if running else summary

    def _draw(self) -> None:
        self._last_drawn = self._clock()
        self._live.update(self.render(), refresh=True)


def make_view(quiet: bool, console: Console) -> GridObserver:
    """Choose a view: none if `quiet`, a live table on a terminal, plain lines otherwise.

    Args:
        quiet: Whether to show nothing.
        console: Where to print. A console that is no terminal, or a dumb one (`TERM=dumb`), gets plain lines.
    """
    if quiet:
        return GridObserver()
    if console.is_terminal and not console.is_dumb_terminal:
        return LiveView(console)
    return PlainView(console)


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"
