"""Collects the rows of one run while its files are read: by name, with steps, repeats, and jumps back."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.analysis.logs.names import step_names
from vcpo_bench.analysis.logs.values import number

Array = NDArray[np.float64]

ROW_NUMBER = "(row number)"


@dataclass(frozen=True)
class Resume:
    """A log that went back: it was resumed from an earlier step.

    Attributes:
        step: Step at which the resumed part begins.
        back_from: Last step before.
        file: Where it was found.
    """

    step: float
    back_from: float
    file: str


@dataclass
class _Track:
    """The step of the rows of one file that name their step alike."""

    last: float = -math.inf


class _Plan(NamedTuple):
    """What to do with rows of one layout: names that may hold the step, and where the kept values go."""

    steps: tuple[str, ...]
    kept: tuple[tuple[str, Callable[[float], None], Callable[[float], None]], ...]


@dataclass
class Rows:
    """Values by name, in the order in which they were read.

    Args:
        keep: Which names' values to keep; the other names are only remembered.

    Attributes:
        names: Every name seen that holds numbers, in order.
        resumes: Where a file went back.
        notes: What a reader must know about the files.
        bad_lines: Lines that could not be read, by file.
        axes: Under which name the steps of each name were logged.
    """

    keep: Callable[[str], bool]
    names: dict[str, None] = field(default_factory=dict)
    resumes: list[Resume] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    bad_lines: dict[str, int] = field(default_factory=dict)
    axes: dict[str, str] = field(default_factory=dict)
    _steps: dict[str, array[float]] = field(default_factory=dict)
    _values: dict[str, array[float]] = field(default_factory=dict)
    _plans: dict[tuple[str, ...], _Plan] = field(default_factory=dict)
    _tracks: dict[tuple[str, str], _Track] = field(default_factory=dict)
    _carried: dict[str, tuple[str, float]] = field(default_factory=dict)

    def add(self, row: Mapping[str, object], file: str, step: float | None = None, axis: str = "step") -> None:
        """Take one row.

        Args:
            row: Name to value; strings such as `NaN` and `np.float64(0.2)` are numbers, the rest is left out.
            file: Where it was read.
            step: Of the row; None: the row itself names it (`steps` in `names.yaml`).
            axis: What that step counts.
        """
        layout = tuple(row)
        plan = self._plans.get(layout)
        if plan is None:
            plan = self._plans[layout] = self._plan(row)
        if step is None:
            step, axis = self._own_step(row, file, plan.steps)
        track = self._tracks.get((file, axis))
        if track is None:
            track = self._tracks[file, axis] = _Track()
        if step < track.last:
            self.resumes.append(Resume(step, track.last, file))
        track.last = step
        for name, add_step, add_value in plan.kept:
            raw = row[name]
            value = raw if type(raw) is float else number(raw)
            if value is not None:
                add_step(step)
                add_value(value)
                if name not in self.axes:
                    self.axes[name] = axis

    def _plan(self, row: Mapping[str, object]) -> _Plan:
        """What to do with rows that hold the same names as this one: most rows of a log do."""
        kept = []
        for name, raw in row.items():
            if name not in _STEPS and self.keep(name):
                steps, values = self._steps.setdefault(name, array("d")), self._values.setdefault(name, array("d"))
                kept.append((name, steps.append, values.append))
                self.names[name] = None
            elif number(raw) is not None:
                self.names[name] = None
        return _Plan(tuple(name for name in _STEP_ORDER if name in row), tuple(kept))

    def add_bad_line(self, file: str) -> None:
        """Count a line that could not be read."""
        self.bad_lines[file] = self.bad_lines.get(file, 0) + 1

    def absorb(self, other: Rows) -> None:
        """Append what was read from another part of the same run."""
        begin = {name: steps[0] for name, steps in other._steps.items() if steps}
        shared = [name for name in begin if self._steps.get(name)]
        if shared:
            ends = max(self._steps[name][-1] for name in shared)
            self.resumes.append(Resume(min(begin[name] for name in shared), ends, "the next log"))
        self.names |= other.names
        for name in other._steps:
            self.axes.setdefault(name, other.axes.get(name, ROW_NUMBER))
            self._steps.setdefault(name, array("d")).extend(other._steps[name])
            self._values.setdefault(name, array("d")).extend(other._values[name])
        self.resumes += other.resumes
        self.notes += other.notes
        self.bad_lines |= other.bad_lines

    def kept(self) -> list[str]:
        """Names whose values were kept, in the order seen."""
        return [name for name, values in self._values.items() if values]

    def series(self, name: str) -> tuple[Array, Array, int]:
        """Steps ascending and values of one name, [n] each, and how many were overwritten: the last write wins."""
        steps, values = np.frombuffer(self._steps[name]), np.frombuffer(self._values[name])
        if steps.size and np.all(steps[1:] > steps[:-1]):
            return steps, values, 0
        unique, first_from_end = np.unique(steps[::-1], return_index=True)
        return unique, values[::-1][first_from_end], int(steps.size - unique.size)

    def _own_step(self, row: Mapping[str, object], file: str, names: tuple[str, ...]) -> tuple[float, str]:
        carried = self._carried.get(file)
        for name in names:
            value = number(row[name])
            if value is not None and math.isfinite(value):
                if name == "_step" and carried is not None and carried[0] != "_step":
                    break
                self._carried[file] = (name, value)
                return value, name
        if carried is not None and carried[0] != ROW_NUMBER:
            return carried[1], carried[0]
        position = carried[1] + 1 if carried is not None else 0.0
        self._carried[file] = (ROW_NUMBER, position)
        return position, ROW_NUMBER


_STEP_ORDER = step_names()
_STEPS = frozenset(_STEP_ORDER)
