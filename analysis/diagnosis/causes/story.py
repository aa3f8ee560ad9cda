"""What a cause asks of a run: did a signal leave its history, before the fall, and how far from its start?"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from vcpo_bench.analysis.diagnosis.departures import DISTANCE, PERSISTENCE, start_size, thinned
from vcpo_bench.analysis.diagnosis.diagnosis import FELL, LOST_SUPPORT, Cause, Departure, Outcome, Standing
from vcpo_bench.analysis.logs.run import LoggedRun
from vcpo_bench.analysis.series import first_long_streak

_NEAR_START = 1.25
"""How far from its start, as a factor, a signal that stayed may end."""


@dataclass(frozen=True)
class Story:
    """A run with its outcome and the departures of its signals."""

    run: LoggedRun
    outcome: Outcome
    departures: tuple[Departure, ...]

    @cached_property
    def latest(self) -> float:
        """Last step at which a sign still comes before the fall; infinite where the run did not fall."""
        onset = self.outcome.onset
        return math.inf if math.isnan(onset) else onset + max(self.outcome.resolution, 0.0)

    def has(self, column: str) -> bool:
        """Whether the log holds a column."""
        return column in self.run.series

    def between_0_and_1(self, column: str) -> bool:
        """Whether all values of a column are shares."""
        _, values = self.run.series[column].finite
        return bool(values.size) and float(values.min()) >= 0 and float(values.max()) <= 1

    def departed(self, column: str) -> Departure | None:
        """The departure of a column, if it had one."""
        return next((one for one in self.departures if one.column == column), None)

    def rose(self, column: str) -> Departure | None:
        """The departure of a column, if it went up."""
        one = self.departed(column)
        return one if one is not None and one.rose else None

    def fell(self, column: str) -> Departure | None:
        """The departure of a column, if it went down."""
        one = self.departed(column)
        return one if one is not None and not one.rose else None

    def start(self, column: str) -> float:
        """Median of the first values of a column; NaN where there is none."""
        _, values = self.run.series[column].finite
        return float(np.median(values[: start_size(values.size)])) if values.size else float("nan")

    def first_above(self, column: str, limit: float) -> float | None:
        """The step from which three values in a row are above a limit; None where none are, or none were logged."""
        return self._first(column, limit, 1.0)

    def first_below(self, column: str, limit: float) -> float | None:
        """The step from which three values in a row are below a limit; None where none are, or none were logged."""
        return self._first(column, limit, -1.0)

    def _first(self, column: str, limit: float, side: float) -> float | None:
        if not self.has(column):
            return None
        steps, values = thinned(self.run.series[column])
        out = side * (values - limit) > 0
        out[: start_size(out.size)] &= bool(out.all())  # what defines the start is not beyond it
        start = first_long_streak(out, PERSISTENCE)
        return None if start is None else float(steps[start])

    def stayed(self, column: str) -> str:
        """A sentence where a logged column stayed within its own history and near its start, else empty."""
        if not self.has(column) or self.departed(column) is not None or not self._near_start(column):
            return ""
        return f"{self.label(column)} stayed within its own history"

    def _near_start(self, column: str) -> bool:
        """Whether a column ends about where it began."""
        _, values = thinned(self.run.series[column])
        if not values.size:
            return False
        start, end = self.start(column), float(np.median(values[-start_size(values.size) :]))
        floor = self.run.series[column].column.floor
        return abs(end - start) <= DISTANCE * floor or abs(end) <= _NEAR_START * abs(start) <= _NEAR_START**2 * abs(end)

    def label(self, column: str) -> str:
        """The column for people, with the name it was logged under."""
        series = self.run.series[column]
        return f"{series.column.label} ({series.logged_as[0]})"

    def moved(self, one: Departure) -> str:
        """What a departure was, in a sentence."""
        way = "rose" if one.rose else "fell"
        change = f"{way} from {_told_apart(one.before, one.after)}"
        return f"{self.label(one.column)} {change} {self.when(one.step, 'at')}"

    def sign(self, one: Departure) -> str:
        """A departure in two words."""
        column = self.run.series[one.column].column
        return f"{column.short or column.label} {'up' if one.rose else 'down'}"

    def when(self, step: float, word: str = "from") -> str:
        """A step and how far it is from the fall."""
        return f"{word} step {step:g}{self.lead(step)}"

    def lead(self, step: float) -> str:
        """How far a step is from the fall, as the end of a sentence."""
        onset = self.outcome.onset
        if math.isnan(onset):
            return ""
        if step > self.latest:
            return f", {step - onset:g} steps after the fall"
        return f", {onset - step:g} steps before the fall" if step < onset else ", with the fall"


def _told_apart(before: float, after: float) -> str:
    """Two numbers with as many digits as it takes to see that they differ."""
    first = second = ""
    for digits in range(3, 7):
        first, second = f"{before:.{digits}g}", f"{after:.{digits}g}"
        if first != second:
            break
    return f"{first} to {second}"


@dataclass
class Case:
    """Collects what speaks for and against one cause."""

    story: Story
    name: str
    _for: list[tuple[float, str]] = field(default_factory=list)
    _against: list[str] = field(default_factory=list)
    _signs: list[tuple[float, str]] = field(default_factory=list)

    def supports(self, step: float, sentence: str, sign: str = "") -> None:
        """Add evidence that begins at a step, and what it is in a few words, where that is a sign of its own."""
        self._for.append((step, sentence))
        if sign:
            self._signs.append((step, sign))

    def take(self, departure: Departure | None) -> None:
        """Add a departure as evidence, if there is one."""
        if departure is not None:
            self.supports(departure.step, self.story.moved(departure), self.story.sign(departure))

    def past(self, column: str, step: float | None, limit: str, sign: str, meaning: str = "") -> None:
        """Add that a column is past a limit from a step on, and what that means; None: it never is."""
        if step is not None:
            self.supports(step, f"{self.story.label(column)} is {limit} {self.story.when(step)}{meaning}", sign)

    def opposes(self, *sentences: str) -> None:
        """Add counter-evidence; empty sentences are left out."""
        self._against += [one for one in sentences if one]

    def close(self) -> Cause | None:
        """The cause, or None where nothing speaks for it."""
        if not self._for:
            return None
        since = min(step for step, _ in self._for)
        early = [one for one in self._for if one[0] <= self.story.latest]
        if not early:
            self.opposes("its first sign comes after the fall: a consequence, more likely than a cause")
        told = self.story.outcome.verdict in FELL or self.name == LOST_SUPPORT  # which blinds the verdict itself
        probable = told and bool(early) and len(early) > len(self._against)
        evidence = tuple(sentence for _, sentence in sorted(self._for, key=lambda one: one[0]))
        standing: Standing = "probable" if probable else "possible"
        return Cause(self.name, standing, since, evidence, tuple(self._against), tuple(sorted(self._signs)))
