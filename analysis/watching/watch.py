"""What is new in a run since it was last looked at: alarms and a fall, each told once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import Literal

from vcpo_bench.analysis.diagnosis.diagnosis import Outcome
from vcpo_bench.analysis.diagnosis.outcome import read_outcome
from vcpo_bench.analysis.log_alarms import AlarmReport, RunAlarm, find_alarms
from vcpo_bench.analysis.logs import LoggedRun
from vcpo_bench.analysis.monitoring.calibration import Calibration

LONGEST = 120
"""Characters of the line of an event."""


@dataclass(frozen=True)
class RunEvent:
    """An alarm, or a fall of the reward.

    Attributes:
        kind: `alarm`: a detector spoke. `collapsed`: the reward fell, by the rule of `diagnose`.
        step: Where it began, in the run's own step.
        text: One line of at most `LONGEST` characters.
        about: What is known of the error rates, in full; empty where nothing is.
        old: It was in the log when watching began.
        alarm: The alarm; None for a fall.
    """

    kind: Literal["alarm", "collapsed"]
    step: float
    text: str
    about: str
    old: bool
    alarm: RunAlarm | None = None


class RunWatch:
    """Tells what a run did since the last look.

    A reading of the log may still lack values of its newest step; that step is judged when a later one is there or when
    nothing came for a while.

    Attributes:
        report: What the detectors said at the last look; None before.
    """

    def __init__(self, calibrations: Sequence[Calibration]) -> None:
        self._calibrations = calibrations
        self._frontier = -math.inf
        self._fell = math.nan
        self.report: AlarmReport | None = None

    def look(self, run: LoggedRun, went_back: float | None = None, settled: bool = False) -> list[RunEvent]:
        """The events since the last look, in the order of steps.

        Args:
            run: The whole run so far.
            went_back: Step to which the run was set back since: what follows is told anew.
            settled: Nothing more will come for the newest step.
        """
        if went_back is not None:
            self._frontier = min(self._frontier, math.nextafter(went_back, -math.inf))
            self._fell = math.nan if went_back <= self._fell else self._fell
        old = self.report is None
        self.report = find_alarms(run, self._calibrations)
        end = run.last_step if settled else math.nextafter(run.last_step, -math.inf)
        events = [
            RunEvent(
                "alarm", one.step, _alarm(one), f"{one.calibration.detector.words}: {one.calibration.words}", old, one
            )
            for one in self.report.alarms
            if self._frontier < one.step <= end
        ]
        self._frontier = max(self._frontier, end)
        outcome = read_outcome(run)
        if outcome.verdict == "collapsed" and math.isnan(self._fell):
            self._fell = outcome.onset
            events.append(RunEvent("collapsed", outcome.onset, _fall(outcome), outcome.checked, old))
        return sorted(events, key=lambda one: one.step)


def _alarm(alarm: RunAlarm) -> str:
    calibration = alarm.calibration
    if calibration.healthy_alarmed is None:
        return _line(f"ALARM {alarm.text}; how often it is wrong was not measured")
    rate = f"{calibration.healthy_alarmed.value:.0%} of {calibration.n_healthy} healthy runs"
    return _line(f"ALARM {alarm.text}; fired in {rate} elsewhere")


def _fall(outcome: Outcome) -> str:
    said = outcome.reason.partition(";")[0].partition(" (")[0].rstrip(".")
    return _line(f"COLLAPSED at step {outcome.onset:.15g}: {said[:1].lower()}{said[1:]}")


def _line(text: str) -> str:
    return shorten(text, LONGEST, placeholder=" ...")
