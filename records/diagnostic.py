"""A column of `steps.parquet`: one object that says what it is called, what it means and how it is computed."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from vcpo_bench.records.column import Column, Kind, Level
from vcpo_bench.records.step_facts import StepFacts

Value = int | float | bool | str | None


@dataclass(frozen=True)
class Diagnostic:
    """One column.

    Attributes:
        name: Name of the column.
        unit: Unit, or the range of a plain number.
        meaning: What it is, in one line.
        compute: The value at one update; None is stored as null.
        kind: How it is stored.
        level: Lowest record level that writes it.
        label: What plots call it; default: the name with spaces.
        log_axis: Whether plots use a logarithmic axis.
    """

    name: str
    unit: str
    meaning: str
    compute: Callable[[StepFacts], Value]
    kind: Kind = "float"
    level: Level = "basic"
    label: str = ""
    log_axis: bool = False

    def column(self) -> Column:
        """The column of the table."""
        return Column(self.name, self.kind, self.unit, self.level, self.meaning)

    def axis_label(self) -> str:
        """What plots write at an axis with this quantity."""
        return self.label or self.name.replace("_", " ")


class Reported(Diagnostic):
    """A column whose value another part of the run reports: a time, a count, a setting of the step.

    Null if nothing reports it: queue lengths exist in asynchronous runs only.
    """

    def __init__(self, name: str, unit: str, meaning: str, **more: Any) -> None:
        super().__init__(name, unit, meaning, lambda facts: facts.reported.get(name), **more)


class MethodMetric(Diagnostic):
    """A column that holds a scalar of the method's own metrics; null where the method does not define it."""

    def __init__(self, name: str, unit: str, meaning: str) -> None:
        super().__init__(name, unit, meaning, self._metric)

    def _metric(self, facts: StepFacts) -> Value:
        value = float(facts.method_metrics.get(self.name, math.nan))
        return None if math.isnan(value) else value


class GradientView(Protocol):
    """The gradient of one update before clipping, as the learner shows it to `GradientDiagnostic`.

    Vectors are torch tensors on the learner's device. This package does not import torch: use their methods.
    """

    @property
    def flat(self) -> Any:
        """`[D]` the gradient of all trained parameters."""

    @property
    def previous(self) -> Any:
        """`[D]` that of the last update whose gradient was finite; None at the first."""

    @property
    def head(self) -> Any:
        """`[D_head]` that of the output head alone; None where the head is frozen."""

    @property
    @abstractmethod
    def head_norm(self) -> float:
        """Its l2 norm; NaN where the head is frozen."""

    @property
    @abstractmethod
    def dots(self) -> tuple[float, float, float]:
        """<g, g>, <g, p> and <p, p> of the gradient g and the previous one p; NaN where there is none."""


@dataclass(frozen=True)
class GradientDiagnostic(Diagnostic):
    """A column measured on the gradient itself, between the backward pass and clipping.

    It costs time at every update, so its level is above `basic`. It is NaN where an update had no finite gradient.

    Attributes:
        measure: The value of one update; the learner calls it while the gradient exists.
    """

    compute: Callable[[StepFacts], Value] = field(init=False)
    measure: Callable[[GradientView], float] = field(kw_only=True)
    level: Level = "diagnostics"

    def __post_init__(self) -> None:
        object.__setattr__(self, "compute", lambda facts: facts.measured.get(self.name, math.nan))
