"""Collects the rows of one run while its files are read: by name, with steps, repeats, and jumps back."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.analysis.logs.names import is_clock, same_steps, step_names
from vcpo_bench.analysis.logs.values import number, step_number

Array = NDArray[np.float64]

ROW_NUMBER = "(row number)"
_LONGEST_NAME = 300
"""Characters of the longest name that is read."""
_MOST_RESUMES = 1000
"""A log that goes back more often than this is no log of a run that was resumed."""


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
    """The rows of one file that name their step alike."""

    last: float = -math.inf
    names: dict[str, None] = field(default_factory=dict)


class _Plan(NamedTuple):
    """What to do with rows of one layout: names that may hold the step, where values go, names that tell a resume."""

    steps: tuple[str, ...]
    kept: tuple[tuple[str, Callable[[float], None], Callable[[float], None]], ...]
    telling: tuple[str, ...]
    tracks: set[tuple[str, str]]


@dataclass
class LogRows:
    """Values by name, in the order in which they were read.

    Args:
        keep: Which names' values to keep; the other names are only remembered.
        step: The name that holds the step of a row, before all others; empty: the usual ones.

    Attributes:
        names: Every name seen that holds numbers, in order.
        resumes: Where a file went back: what it had written from that step on is dropped, for it was left behind.
        notes: What a reader must know about the files.
        bad_lines: Lines that could not be read, by file.
        axes: Under which name the steps of each name were logged.
    """

    keep: Callable[[str], bool]
    step: str = ""
    names: dict[str, None] = field(default_factory=dict)
    resumes: list[Resume] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    bad_lines: dict[str, int] = field(default_factory=dict)
    axes: dict[str, str] = field(default_factory=dict)
    _steps: dict[str, array[float]] = field(default_factory=dict)
    _values: dict[str, array[float]] = field(default_factory=dict)
    _dropped: dict[str, int] = field(default_factory=dict)
    _farthest: dict[str, float] = field(default_factory=dict)
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
        if step is None or (self.step and self.step in row):
            step, axis = self._own_step(row, file, plan.steps)
        elif not math.isfinite(step):
            self.add_bad_line(file)
            return
        place = file, axis
        track = self._tracks.get(place)
        if track is None:
            track = self._tracks[place] = _Track()
        if place not in plan.tracks:
            plan.tracks.add(place)
            track.names.update(dict.fromkeys(name for name, _, _ in plan.kept))
        if step >= track.last:
            track.last = step
        elif len(self.resumes) < _MOST_RESUMES and self._writes_again(step, row, plan):
            self.resumes.append(Resume(step, track.last, file))
            self._drop(track.names, step)
            track.last = step
        for name, add_step, add_value in plan.kept:
            raw = row[name]
            value = raw if type(raw) is float else number(raw)
            if value is not None:
                add_step(step)
                add_value(value)
                if name not in self.axes:
                    self.axes[name] = axis

    def names_a_step(self, row: Mapping[str, object]) -> bool:
        """Whether a row says which step it is of."""
        order = (self.step, *_STEP_ORDER)
        return any(step_number(row[name]) is not None for name in order if name in row)

    def _plan(self, row: Mapping[str, object]) -> _Plan:
        """What to do with rows that hold the same names as this one: most rows of a log do."""
        kept = []
        for name, raw in row.items():
            if len(name) > _LONGEST_NAME:
                continue
            if name not in _STEPS and name != self.step and self.keep(name):
                steps, values = self._steps.setdefault(name, array("d")), self._values.setdefault(name, array("d"))
                kept.append((name, steps.append, values.append))
                self.names[name] = None
            elif name == self.step or number(raw) is not None:
                self.names[name] = None
        order = (self.step, *_STEP_ORDER) if self.step else _STEP_ORDER
        telling = tuple(name for name, _, _ in kept if not is_clock(name))
        return _Plan(tuple(name for name in order if name in row), tuple(kept), telling, set())

    def _writes_again(self, step: float, row: Mapping[str, object], plan: _Plan) -> bool:
        """Whether a row behind the others is a resume.

        One that is only late, as evaluations are, repeats no value; one of another process of the run, no other than
        the time of a step.
        """
        written = (self._steps[name] for name in plan.telling if number(row[name]) is not None)
        return any(steps[at] == step for steps in written if (at := bisect_left(steps, step)) < len(steps))

    def _drop(self, names: Iterable[str], step: float) -> None:
        """Forget the values from a step on, which a resumed run left behind."""
        for name in names:
            steps, values = self._steps[name], self._values[name]
            before = len(steps)
            if before:
                self._farthest[name] = max(steps[-1], self._farthest.get(name, steps[-1]))
            while steps and steps[-1] >= step:
                steps.pop()
                values.pop()
            self._dropped[name] = self._dropped.get(name, 0) + before - len(steps)

    def add_bad_line(self, file: str) -> None:
        """Count a line that could not be read."""
        self.bad_lines[file] = self.bad_lines.get(file, 0) + 1

    def absorb(self, other: LogRows) -> None:
        """Append what was read from another part of the same run."""
        begin = {name: steps[0] for name, steps in other._steps.items() if steps and not is_clock(name)}
        shared = [name for name in begin if self._steps.get(name)]
        if 2 * len(shared) > len(begin):  # else two logs of one run, side by side
            ends = max(self._steps[name][-1] for name in shared)
            self.resumes.append(Resume(min(begin[name] for name in shared), ends, "the next log"))
            self._drop_behind({name: begin[name] for name in shared})
        self.names |= other.names
        for name in other._steps:
            self.axes.setdefault(name, other.axes.get(name, ROW_NUMBER))
            self._steps.setdefault(name, array("d")).extend(other._steps[name])
            self._values.setdefault(name, array("d")).extend(other._values[name])
        for name, count in other._dropped.items():
            self._dropped[name] = self._dropped.get(name, 0) + count
        for name, step in other._farthest.items():
            self._farthest[name] = max(step, self._farthest.get(name, step))
        self.resumes += other.resumes
        self.notes += other.notes
        self.bad_lines |= other.bad_lines

    def _drop_behind(self, begin: Mapping[str, float]) -> None:
        """Forget what lies behind the steps at which a next log begins, by name; each axis has its own."""
        for axis in {self.axes[name] for name in begin}:
            step = min(first for name, first in begin.items() if self.axes[name] == axis)
            self._drop([name for name in self.kept() if self.axes[name] == axis], step)

    def kept(self) -> list[str]:
        """Names whose values were kept, in the order seen."""
        return [name for name, values in self._values.items() if values]

    def farthest(self, name: str) -> float:
        """The largest step a name with values was ever logged at, also before a resume."""
        end = float(np.frombuffer(self._steps[name]).max())
        return max(end, self._farthest.get(name, end))

    def series(self, name: str) -> tuple[Array, Array, int]:
        """Steps ascending and values of one name, [n] each, and how many were replaced: the last write wins."""
        steps, values = np.frombuffer(self._steps[name]), np.frombuffer(self._values[name])
        dropped = self._dropped.get(name, 0)
        if steps.size and np.all(steps[1:] > steps[:-1]):
            return steps, values, dropped
        unique, first_from_end = np.unique(steps[::-1], return_index=True)
        return unique, values[::-1][first_from_end], int(steps.size - unique.size) + dropped

    def _own_step(self, row: Mapping[str, object], file: str, names: tuple[str, ...]) -> tuple[float, str]:
        carried = self._carried.get(file)
        for name in names:
            value = step_number(row[name])
            if value is not None and math.isfinite(value):
                if name == "_step" and carried is not None and carried[0] != "_step":
                    break
                axis = _SAME_STEPS.get(name, name)
                self._carried[file] = (axis, value)
                return value, axis
        if carried is not None and carried[0] != ROW_NUMBER:
            return carried[1], carried[0]
        position = carried[1] + 1 if carried is not None else 0.0
        self._carried[file] = (ROW_NUMBER, position)
        return position, ROW_NUMBER


_STEP_ORDER = step_names()
_STEPS = frozenset(_STEP_ORDER)
_SAME_STEPS = same_steps()
