"""Collects the rows of one run while its files are read: by name, with steps, repeats, and jumps back."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

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

    last: float = -np.inf
    rows: int = 0


@dataclass
class Rows:
    """Values by name, in the order in which they were read.

    Args:
        keep: Which names' values to keep; the other names are only remembered.

    Attributes:
        names: Every name seen, with the number of its values.
        resumes: Where a file went back.
        notes: What a reader must know about the files.
        bad_lines: Lines that could not be read, by file.
    """

    keep: Callable[[str], bool]
    names: dict[str, int] = field(default_factory=dict)
    resumes: list[Resume] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    bad_lines: dict[str, int] = field(default_factory=dict)
    axes: dict[str, str] = field(default_factory=dict)
    _steps: dict[str, array[float]] = field(default_factory=dict)
    _values: dict[str, array[float]] = field(default_factory=dict)
    _kept: dict[str, bool] = field(default_factory=dict)
    _tracks: dict[tuple[str, str], _Track] = field(default_factory=dict)
    _carried: dict[str, tuple[str, float]] = field(default_factory=dict)

    def add(self, row: Mapping[str, object], file: str, step: float | None = None, axis: str = "step") -> None:
        """Take one row.

        Args:
            row: Name to value; strings such as `NaN` and `np.float64(0.2)` are numbers, the rest is left out.
            file: Where it was read.
            step: Of the row; None: the row itself names it (`names.yaml`, `steps`).
            axis: What that step counts.
        """
        if step is None:
            step, axis = self._own_step(row, file)
        self._watch_order(step, axis, file)
        for name, raw in row.items():
            value = raw if type(raw) is float else number(raw)
            if value is None:
                continue
            kept = self._kept.get(name)
            if kept is None:
                kept = self._kept[name] = name not in _STEPS and self.keep(name)
                self.names[name] = 0
                if kept:
                    self._steps[name], self._values[name] = array("d"), array("d")
                    self.axes[name] = axis
            self.names[name] += 1
            if kept:
                self._steps[name].append(step)
                self._values[name].append(value)

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
        for name, count in other.names.items():
            self.names[name] = self.names.get(name, 0) + count
        for name in other._steps:
            self.axes.setdefault(name, other.axes[name])
            self._steps.setdefault(name, array("d")).extend(other._steps[name])
            self._values.setdefault(name, array("d")).extend(other._values[name])
            self._kept[name] = True
        self.resumes += other.resumes
        self.notes += other.notes
        self.bad_lines |= other.bad_lines

    def kept(self) -> list[str]:
        """Names whose values were kept, in the order seen."""
        return list(self._values)

    def series(self, name: str) -> tuple[Array, Array, int]:
        """Steps ascending and values of one name, [n] each, and how many were overwritten: the last write wins."""
        steps, values = np.frombuffer(self._steps[name]), np.frombuffer(self._values[name])
        if steps.size and np.all(steps[1:] > steps[:-1]):
            return steps, values, 0
        unique, first_from_end = np.unique(steps[::-1], return_index=True)
        return unique, values[::-1][first_from_end], int(steps.size - unique.size)

    def _own_step(self, row: Mapping[str, object], file: str) -> tuple[float, str]:
        for name in _STEP_ORDER:
            if name in row:
                value = number(row[name])
                if value is not None and np.isfinite(value):
                    if name == "_step" and file in self._carried and self._carried[file][0] != "_step":
                        break
                    self._carried[file] = (name, value)
                    return value, name
        if file in self._carried and self._carried[file][0] != ROW_NUMBER:
            return self._carried[file][1], self._carried[file][0]
        position = self._carried[file][1] + 1 if file in self._carried else 0.0
        self._carried[file] = (ROW_NUMBER, position)
        return position, ROW_NUMBER

    def _watch_order(self, step: float, axis: str, file: str) -> None:
        track = self._tracks.setdefault((file, axis), _Track())
        if step < track.last:
            self.resumes.append(Resume(step, track.last, file))
        track.last = step
        track.rows += 1


_STEP_ORDER = step_names()
_STEPS = frozenset(_STEP_ORDER)
