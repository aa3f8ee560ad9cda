"""A run as another trainer logged it: series under our names, where each came from, and what happened to the log."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.analysis.logs.names import LogColumn, Name
from vcpo_bench.analysis.logs.rows import Resume

Array = NDArray[np.float64]

PART = "reward_part"
"""The column of which each name is a curve of its own: a part of the reward, such as its format."""


@dataclass(frozen=True)
class Series:
    """One column of a run.

    Attributes:
        column: Ours.
        source: The foreign name, its tag and where its meaning was read.
        logged_as: The names whose values these are; several are averaged.
        steps: The run's own step, ascending, shape [n].
        values: In the column's unit, shape [n]; values that are not finite are kept.
    """

    column: LogColumn
    source: Name
    logged_as: tuple[str, ...]
    steps: Array
    values: Array

    @property
    def finite(self) -> tuple[Array, Array]:
        """Steps and values without those that are not finite."""
        kept = np.isfinite(self.values)
        return self.steps[kept], self.values[kept]


@dataclass(frozen=True)
class LoggedRun:
    """What `read_run` returns.

    Attributes:
        path: What was read.
        framework: Name of the framework that wrote it (a file of `frameworks/`), or `"mapped"`.
        title: The framework for people.
        step_unit: What one step of the log is.
        step_name: The name the step was logged under.
        series: By our column.
        unused: Names in the log that were not mapped.
        resumes: Where the log went back.
        overwritten: Values that were replaced: written twice for the same step, or left behind by a resume.
        status: How the run ended, where the log says so (`records.Status`); else empty.
        notes: What a reader must know about the files, one sentence each.
        parts: The parts whose sum is the reward, by the name each was logged under.
    """

    path: str
    framework: str
    title: str
    step_unit: str
    step_name: str
    series: dict[str, Series]
    unused: tuple[str, ...] = ()
    resumes: tuple[Resume, ...] = ()
    overwritten: int = 0
    status: str = ""
    notes: tuple[str, ...] = field(default=())
    parts: dict[str, Series] = field(default_factory=dict)

    @property
    def last_step(self) -> float:
        """The largest step of any column; NaN where there is none."""
        ends = [float(one.steps[-1]) for one in self.series.values() if one.steps.size]
        return max(ends, default=float("nan"))
