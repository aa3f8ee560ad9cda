"""The alarms that detectors raise on a logged run, in the run's own step.

A detector looks back only: the alarms on the first half of a log are those it would have raised while it ran.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vcpo_bench.analysis.log_alarms.updates import lengths_at, updates_of
from vcpo_bench.analysis.logs.run import LoggedRun
from vcpo_bench.analysis.monitoring.alarm_panel import alarm_text
from vcpo_bench.analysis.monitoring.calibration import Calibration
from vcpo_bench.analysis.monitoring.detectors import REFRACTORY, beginnings
from vcpo_bench.analysis.monitoring.long_responses import too_long
from vcpo_bench.analysis.monitoring.reward_noise import beyond_chance
from vcpo_bench.analysis.monitoring.signal import SIGNALS


@dataclass(frozen=True)
class RunAlarm:
    """An alarm on a logged run; alarms at most `REFRACTORY` rows apart are one, which counts where it begins.

    Attributes:
        calibration: The detector and its measured errors.
        step: Where it begins, in the run's own step.
        score: Trailing mean of its signal there.
    """

    calibration: Calibration
    step: float
    score: float

    @property
    def text(self) -> str:
        """Signal, score and threshold, without the rates."""
        return alarm_text(self.calibration.detector, self.score, self.step)

    def __str__(self) -> str:
        """One line: what it heard, and how often the detector was wrong where it was tuned."""
        return f"{self.text}; {self.calibration.words}"


@dataclass(frozen=True)
class AlarmReport:
    """What the detectors of a file said about a run.

    Attributes:
        alarms: In the order of steps.
        silent: Signals that cannot be computed from this log, or not be heard where it ends, and why: their detectors
            cannot raise an alarm.
        notes: What makes this log unlike the runs the detectors were tuned on.
    """

    alarms: tuple[RunAlarm, ...]
    silent: dict[str, str]
    notes: tuple[str, ...]


def find_alarms(run: LoggedRun, calibrations: Sequence[Calibration]) -> AlarmReport:
    """Run the detectors over everything that was logged so far."""
    alarms: list[RunAlarm] = []
    silent: dict[str, str] = {}
    spacings: list[float] = []
    for one in calibrations:
        signal = SIGNALS.get(one.detector.signal)()
        table, refused = updates_of(run, signal.columns, one.inputs, one.reward)
        values = signal.of(table)
        if not np.isfinite(values).any():
            absent = [name for name in signal.columns if name not in table and name not in refused]
            reasons = [f"{name} is not in the log" for name in absent] + list(refused.values())
            silent[signal.name] = "; ".join(reasons) or "no value can be computed so far"
            continue
        lengths = lengths_at(run, table.steps)
        deaf = too_long(one, signal, lengths)
        if one.lengths is not None and deaf[-1]:
            low, high = one.lengths
            silent[signal.name] = f"responses of {lengths[-1]:,.0f} tokens, tuned on {low:,.0f} to {high:,.0f}"
        values = np.where(deaf, np.nan, values)
        if "sampled_reward" in signal.columns:
            values = beyond_chance(signal, values, table["sampled_reward"], one.detector.threshold)
        raised, scores = one.detector.alarms(values), one.detector.scores(values)
        starts = np.flatnonzero(beginnings(raised[None, :])[0])
        alarms += [RunAlarm(one, float(table.steps[at]), float(scores[at])) for at in starts]
        if table.steps.size > 1:
            spacings.append(float(np.median(np.diff(table.steps))))
    alarms.sort(key=lambda one: (one.step, one.calibration.detector.text))
    return AlarmReport(tuple(alarms), silent, _notes(run, max(spacings, default=1.0)))


def _notes(run: LoggedRun, spacing: float) -> tuple[str, ...]:
    if spacing <= 1:
        return ()
    return (
        f"The log has one row per {spacing:g} {run.step_unit}: detectors count rows, and their windows and the silence "
        f"of {REFRACTORY} rows that ends an alarm are {spacing:g} times as long as where they were tuned.",
    )
