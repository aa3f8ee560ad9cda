"""The state of a running grid: what a view needs to draw it, with no drawing in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from vcpo_bench.reports.formatting import duration

FAILED = "error"
"""The status counted as failed. `nan` and `stopped_by` are results: the method's doing, not a broken run."""


@dataclass
class RunningCell:
    """A cell in training: its label, updates done of `steps`, and the latest sampled reward and ESS ratio."""

    label: str
    steps: int
    began: float
    step: int = 0
    reward: float = math.nan
    ess: float = math.nan
    first_step: int | None = None

    @property
    def fraction(self) -> float:
        """Share of its updates done, 0 to 1."""
        return min(self.step / self.steps, 1.0) if self.steps > 0 else 0.0


@dataclass
class GridProgress:
    """Counts and time estimate of a grid, fed by run events. Times are seconds of any monotonic clock."""

    labels: dict[str, str] = field(default_factory=dict)
    already_done: int = 0
    running: dict[str, RunningCell] = field(default_factory=dict)
    ended: dict[str, str] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    most_running: int = 0

    def begin(self, cells: Sequence[tuple[str, str]], already_done: int) -> None:
        """Take note of the cells about to run and of how many ended in earlier runs."""
        self.labels = dict(cells)
        self.already_done = already_done

    def started(self, key: str, label: str, steps: int, now: float) -> None:
        """A cell began at time `now`."""
        self.labels[key] = label
        self.running[key] = RunningCell(label, steps, now)
        self.most_running = max(self.most_running, len(self.running))

    def progressed(self, key: str, step: int, reward: float, ess: float) -> None:
        """A running cell has done `step` updates; events of unknown cells are ignored."""
        cell = self.running.get(key)
        if cell is None:
            return
        if cell.first_step is None:
            cell.first_step = step
        cell.step, cell.reward, cell.ess = step, reward, ess

    def finished(self, key: str, status: str, seconds: float) -> None:
        """A cell ended with `status` after `seconds` of work."""
        self.running.pop(key, None)
        self.ended[key] = status
        if status != FAILED and math.isfinite(seconds):
            self.seconds.append(seconds)

    @property
    def total(self) -> int:
        """All cells of the grid, those of earlier runs included."""
        return self.already_done + len(self.labels)

    @property
    def failed(self) -> int:
        """Cells that ended in an error in this run."""
        return sum(status == FAILED for status in self.ended.values())

    @property
    def done(self) -> int:
        """Cells that ended otherwise, those of earlier runs included."""
        return self.already_done + len(self.ended) - self.failed

    @property
    def left(self) -> int:
        """Cells not begun yet."""
        return max(self.total - self.done - self.failed - len(self.running), 0)

    def seconds_left(self, now: float) -> float | None:
        """Seconds until the last cell ends, or None while nothing can be said.

        A cell costs the mean of the cells ended in this run; before the first ends, the running ones are extrapolated.
        """
        costs = self.seconds or self._extrapolated(now)
        if not costs or not self.most_running:
            return None
        cost = sum(costs) / len(costs)
        open_cells = self.left + sum(1.0 - cell.fraction for cell in self.running.values())
        return cost * open_cells / self.most_running

    def _extrapolated(self, now: float) -> list[float]:
        # A resumed cell starts at a step above 0: only what was done since counts.
        costs = []
        for cell in self.running.values():
            steps = cell.step - (cell.first_step or 0)
            if steps > 0:
                costs.append((now - cell.began) * cell.steps / steps)
        return costs

    def summary(self, now: float) -> str:
        """One line: `5 of 24 done, 2 running, 17 left, about 3 min left`; failures only when there are some."""
        parts = [f"{self.done} of {self.total} cells done"]
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self.running:
            parts.append(f"{len(self.running)} running")
        if self.left:
            parts.append(f"{self.left} waiting")
        left = self.seconds_left(now)
        if left is not None and (self.running or self.left):
            parts.append(f"about {duration(left)} left")
        return ", ".join(parts)
