"""The state of a running grid, without any drawing: counts, running cells, and the time left."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from vcpo_bench.reports.formatting import duration

FAILED = "error"
"""The status that counts as failed. `nan` and `stopped_by` are results: the run worked, the method did not."""


@dataclass
class RunningCell:
    """A cell in training.

    Attributes:
        label: What the user sees.
        steps: Updates in all.
        step: Updates done.
        reward: Latest sampled reward.
        ess: Latest ESS ratio, 0 to 1.
        first_step: Updates done at its first event: more than 0 for a resumed cell.
        moved: Time of that event, by which libraries are loaded.
        heard: Time of its latest event.
    """

    label: str
    steps: int
    step: int = 0
    reward: float = math.nan
    ess: float = math.nan
    first_step: int | None = None
    moved: float = 0.0
    heard: float = 0.0

    @property
    def fraction(self) -> float:
        """Fraction of its updates that are done, 0 to 1."""
        return min(self.step / self.steps, 1.0) if self.steps > 0 else 0.0

    def whole(self, until: float) -> float:
        """Seconds that all its updates take at the pace from its first event until a time; 0 before a second event."""
        steps = 0 if self.first_step is None else self.step - self.first_step
        return (until - self.moved) * self.steps / steps if steps > 0 else 0.0


@dataclass
class GridProgress:
    """Counts and time estimate of a grid, updated by run events. Times are in seconds, from any monotonic clock."""

    labels: dict[str, str] = field(default_factory=dict)
    already_done: int = 0
    running: dict[str, RunningCell] = field(default_factory=dict)
    ended: dict[str, str] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    most_running: int = 0
    warnings: set[str] = field(default_factory=set)

    def begin(self, cells: Sequence[tuple[str, str]], already_done: int) -> None:
        """Set the cells about to run, by key and label, and how many ended in earlier runs."""
        self.labels = dict(cells)
        self.already_done = already_done

    def started(self, key: str, label: str, steps: int) -> None:
        """A cell started."""
        self.labels[key] = label
        self.running[key] = RunningCell(label, steps)
        self.most_running = max(self.most_running, len(self.running))

    def progressed(self, key: str, step: int, reward: float, ess: float, now: float) -> None:
        """A running cell has finished `step` updates at time `now`; events of unknown cells are ignored."""
        cell = self.running.get(key)
        if cell is None:
            return
        if cell.first_step is None:
            cell.first_step, cell.moved = step, now
        cell.step, cell.reward, cell.ess, cell.heard = step, reward, ess, now

    def finished(self, key: str, status: str, seconds: float) -> None:
        """A cell has ended with `status` after `seconds` of work, which of a resumed cell are those since then."""
        cell = self.running.pop(key, None)
        self.ended[key] = status
        if status != FAILED and math.isfinite(seconds):
            self.seconds.append(max(seconds, cell.whole(cell.heard) * cell.fraction if cell else 0.0))

    def warns_anew(self, text: str) -> bool:
        """Whether no warning before was the same but for its numbers."""
        kind, known = re.sub(r"\d+", "", text), len(self.warnings)
        self.warnings.add(kind)
        return len(self.warnings) > known

    @property
    def total(self) -> int:
        """Cells of the grid, including those of earlier runs."""
        return self.already_done + len(self.labels)

    @property
    def failed(self) -> int:
        """Cells that ended in an error in this run."""
        return sum(status == FAILED for status in self.ended.values())

    @property
    def done(self) -> int:
        """Cells that ended without an error, including those of earlier runs."""
        return self.already_done + len(self.ended) - self.failed

    @property
    def left(self) -> int:
        """Cells that have not started."""
        return max(self.total - self.done - self.failed - len(self.running), 0)

    def seconds_left(self, now: float) -> float | None:
        """Estimated seconds until the last cell ends, or None while there is nothing to estimate from.

        A cell is expected to take the mean time of the cells that ended in this run. Before the first ends, the running
        cells are extrapolated.
        """
        costs = self.seconds or [one for cell in self.running.values() if (one := cell.whole(now))]
        if not costs or not self.most_running:
            return None
        cost = sum(costs) / len(costs)
        open_cells = self.left + sum(1.0 - cell.fraction for cell in self.running.values())
        return cost * open_cells / self.most_running

    def _latest(self) -> str:
        cells = self.running.values()
        known = {"reward": [c.reward for c in cells], "ESS": [c.ess for c in cells]}
        finite = {name: [v for v in values if math.isfinite(v)] for name, values in known.items()}
        shown = ", ".join(f"{name} {sum(values) / len(values):.2f}" for name, values in finite.items() if values)
        return f" ({shown})" if shown else ""

    def summary(self, now: float) -> str:
        """One line, such as `5 of 24 cells done, 2 running (reward 0.61, ESS 0.84), 17 waiting, about 3 min left`.

        Zeros are left out. Reward and ESS are means over the running cells of their latest values.
        """
        parts = [f"{self.done} of {self.total} cells done"]
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self.running:
            parts.append(f"{len(self.running)} running{self._latest()}")
        if self.left:
            parts.append(f"{self.left} waiting")
        left = self.seconds_left(now)
        if left is not None and (self.running or self.left):
            parts.append(f"about {duration(left)} left")
        return ", ".join(parts)
