"""The answer of `diagnose`, as data."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.analysis.log_alarms import AlarmReport
from vcpo_bench.analysis.logs.run import LoggedRun

Verdict = Literal["collapsed", "declining", "dip", "stall", "healthy", "cannot tell"]
VERDICTS: tuple[Verdict, ...] = ("collapsed", "declining", "dip", "stall", "healthy", "cannot tell")
LOST_SUPPORT = "lost support"
"""The cause that makes the logged reward one of another policy."""
PART_LOST = "part of the reward"
"""The cause that one part of the reward was earned in place of another."""
FELL: tuple[Verdict, ...] = ("collapsed", "declining")
"""The verdicts on a run that lost what it had: only such a fall has probable causes."""
Standing = Literal["probable", "possible"]


@dataclass(frozen=True)
class Outcome:
    """What the reward says, and nothing else.

    Attributes:
        verdict: One of `VERDICTS`.
        onset: Step at which the run fell, in its own unit; NaN where it did not.
        resolution: Updates averaged into one point of the curve: the onset is known to within that.
        column: The column the verdict was read from; empty where there is none.
        reason: Why, in a sentence.
        checked: What is known about the error rates of this rule, in a sentence.
    """

    verdict: Verdict
    onset: float
    resolution: float
    column: str
    reason: str
    checked: str


@dataclass(frozen=True)
class Departure:
    """A signal that left its own history. That is no verdict: healthy runs have some too.

    Attributes:
        column: Which.
        step: Where it began.
        before: Median over the history.
        after: Median of the values that left.
        logged_as: The foreign name.
        tag: How close that name is to our column.
    """

    column: str
    step: float
    before: float
    after: float
    logged_as: str
    tag: str

    @property
    def rose(self) -> bool:
        """Whether it went up."""
        return self.after > self.before


@dataclass(frozen=True)
class Cause:
    """A possible cause with what speaks for it and against it.

    Attributes:
        name: Short name.
        standing: `probable`: more speaks for it than against it, and it began before the fall. Else `possible`.
        since: Step of its first sign; NaN where it has none.
        evidence: For it, one sentence each.
        against: Against it, one sentence each.
        signs: What speaks for it in a few words, such as `ESS down`, each with the step where it began.
    """

    name: str
    standing: Standing
    since: float
    evidence: tuple[str, ...]
    against: tuple[str, ...]
    signs: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True)
class Unseen:
    """What the log did not hold.

    Attributes:
        column: Our column.
        label: For people.
        switch: The setting of that framework that logs it; empty where none is known.
    """

    column: str
    label: str
    switch: str


class Link(NamedTuple):
    """Something that began.

    Attributes:
        sign: What, such as `ESS down`.
        step: From where on.
    """

    sign: str
    step: float


class Advice(NamedTuple):
    """One thing to change.

    Attributes:
        set: The setting, or what to do where the trainer's setting is not known.
        why: In a few words.
        source: Where that comes from.
    """

    set: str
    why: str
    source: str


class ShortCurve(NamedTuple):
    """One signal of one run.

    Attributes:
        values: The finite ones, shape [n].
        start: Median of the first.
        end: Median of the last.
    """

    values: NDArray[np.float64]
    start: float
    end: float


class Beside(NamedTuple):
    """One signal of three runs; None where one of them does not log it.

    Attributes:
        label: For people.
        here: Of the run that is diagnosed.
        healthy: Of the run that learns.
        collapsed: Of the run that collapses.
    """

    label: str
    here: ShortCurve | None
    healthy: ShortCurve | None
    collapsed: ShortCurve | None


class References(NamedTuple):
    """A run beside two that ship.

    Attributes:
        trainer: Whose runs these are, for people.
        signals: One after another.
    """

    trainer: str
    signals: tuple[Beside, ...]


@dataclass(frozen=True)
class Diagnosis:
    """What happened to a run.

    Attributes:
        run: What was read.
        outcome: From the reward only.
        departures: Signals in the order in which they left their own history.
        causes: The probable ones first.
        unseen: What could not be seen.
        baseline: How this run compares with a reference run, one sentence each.
        alarms: What the detectors of a calibration say about the run; None: none was given.
        answers: To questions that people ask of such a log, one sentence each.
        chain: What began up to the fall, and where, the earliest first.
        try_next: What to change, the most likely first.
        references: The run beside two that ship; None: not asked for.
    """

    run: LoggedRun
    outcome: Outcome
    departures: tuple[Departure, ...]
    causes: tuple[Cause, ...]
    unseen: tuple[Unseen, ...]
    baseline: tuple[str, ...] = ()
    alarms: AlarmReport | None = None
    answers: tuple[str, ...] = ()
    chain: tuple[Link, ...] = ()
    try_next: tuple[Advice, ...] = ()
    references: References | None = None

    @property
    def resume_from(self) -> float:
        """The earliest sign, or else the fall: resume from the last checkpoint before it. NaN without advice."""
        return min((one.step for one in self.chain), default=self.onset) if self.try_next else float("nan")

    @property
    def verdict(self) -> Verdict:
        """One of `VERDICTS`, from the outcome only."""
        return self.outcome.verdict

    @property
    def onset(self) -> float:
        """Step at which the run fell; NaN where it did not."""
        return self.outcome.onset

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON: NaN is null."""
        facts = {
            "path": self.run.path,
            "framework": self.run.framework,
            "step_unit": self.run.step_unit,
            "step_name": self.run.step_name,
            "outcome": asdict(self.outcome),
            "departures": [asdict(one) for one in self.departures],
            "causes": [asdict(one) for one in self.causes],
            "unseen": [asdict(one) for one in self.unseen],
            "baseline": list(self.baseline),
            "references": _references(self.references),
            "alarms": _alarms(self.alarms),
            "answers": list(self.answers),
            "chain": [one._asdict() for one in self.chain],
            "try_next": [one._asdict() for one in self.try_next],
            "resume_from": self.resume_from,
            "columns": {
                name: {"logged_as": list(one.logged_as), "tag": one.source.tag, "values": int(one.steps.size)}
                for name, one in self.run.series.items()
            },
            "resumes": [asdict(one) for one in self.run.resumes],
            "overwritten": self.run.overwritten,
            "notes": list(self.run.notes),
        }
        plain: dict[str, Any] = _plain(facts)
        return plain


def _alarms(report: AlarmReport | None) -> dict[str, Any] | None:
    if report is None:
        return None
    raised = [
        {"step": one.step, "detector": one.calibration.detector.text, "score": one.score, "text": str(one)}
        for one in report.alarms
    ]
    return {"raised": raised, "silent": report.silent, "notes": list(report.notes)}


def _references(found: References | None) -> dict[str, Any] | None:
    if found is None:
        return None
    runs = ("here", "healthy", "collapsed")
    signals = [
        {"label": one.label}
        | {name: curve and [curve.start, curve.end] for name, curve in zip(runs, one[1:], strict=True)}
        for one in found.signals
    ]
    return {"trainer": found.trainer, "signals": signals}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
