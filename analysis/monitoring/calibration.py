"""Detectors with their measured error rates, as `vcpo-bench lab calibrate` and `lab analyze prediction` write them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from vcpo_bench.analysis.monitoring.detectors import Detector
from vcpo_bench.analysis.monitoring.signal import SIGNALS
from vcpo_bench.errors import UsageError

DEFAULTS = Path(__file__).with_name("default_detectors.json")
"""The detectors of the package, the best first."""

LEAST_RUNS = 15
"""Collapsed, and healthy, held-out runs that a rate needs; with fewer it counts as not measured."""

RewardRange = Literal["unit", "signed", "any"]
"""Where the rewards lay that a detector was tuned on: 0 to 1, -1 to 1, or elsewhere."""
REWARD_RANGES: dict[RewardRange, tuple[float, float]] = {"unit": (0.0, 1.0), "signed": (-1.0, 1.0)}
"""The narrowest first; elsewhere has no bounds."""
_SLACK = 1e-6


def lie_in(rewards: ArrayLike, wanted: RewardRange) -> bool:
    """Whether rewards of any shape, without NaN, lie in a range."""
    low, high = REWARD_RANGES.get(wanted, (-np.inf, np.inf))
    values = np.asarray(rewards, dtype=np.float64)
    return bool(((values >= low - _SLACK) & (values <= high + _SLACK)).all())


class Rate(NamedTuple):
    """A measured value with its 95% interval."""

    value: float
    low: float
    high: float

    @property
    def percent(self) -> str:
        """`10% [6, 16]`."""
        return f"{self.value:.0%} [{100 * self.low:.0f}, {100 * self.high:.0f}]"


class Elsewhere(NamedTuple):
    """What detectors did in studies that did not tune them.

    Attributes:
        low: The fewest alarms of any of them per 1,000 updates of a study's healthy runs.
        high: The most.
        studies: How many studies these are of.
    """

    low: float
    high: float
    studies: int

    @property
    def words(self) -> str:
        """`2.9 to 9.3 per 1,000 in 4 studies that did not tune them`."""
        return f"{self.low:.1f} to {self.high:.1f} per 1,000 in {self.studies} studies that did not tune them"


@dataclass(frozen=True)
class Union:
    """All detectors of a file taken together: a user hears every one of them.

    Attributes:
        detectors: How many they are.
        healthy_alarmed: Share of healthy runs in which any of them raised an alarm; None: not measured.
        recall: Share of collapses that any of them announced in time; None: not measured.
        study: Where that was measured.
        elsewhere: What they did in other studies; None: not measured.
    """

    detectors: int
    healthy_alarmed: Rate | None
    recall: Rate | None
    study: str
    elsewhere: Elsewhere | None = None


@dataclass(frozen=True)
class VerdictRates:
    """How often the verdict on the training reward agreed with the one on the evaluations of the same runs.

    Attributes:
        found: Share of the runs lost by their evaluations that it calls collapsed.
        false: Share of the other runs that it calls collapsed.
        study: Where that was measured.
        n_collapsed: Runs lost by their evaluations.
        n_other: The others.
    """

    found: Rate
    false: Rate
    study: str
    n_collapsed: int
    n_other: int

    @property
    def words(self) -> str:
        """A sentence that says where the rates hold."""
        return (
            f"Measured elsewhere ({self.study}): read from the training reward, this rule called {self.found.percent} "
            f"of {self.n_collapsed} runs collapsed that their evaluations lost, and {self.false.percent} of "
            f"{self.n_other} others. Its rates on runs like this one are not known."
        )


@dataclass(frozen=True)
class Calibration:
    """A detector, and what is known of its errors from runs that did not choose its threshold.

    Attributes:
        detector: The detector.
        false_alarms: Alarm episodes per 1,000 updates of healthy runs; None: not measured.
        recall: Share of collapses with an alarm in time; None: not measured.
        median_lead: Updates from alarm to collapse, among those caught; None: not measured.
        study: Where these numbers come from.
        n_collapsed: Held-out runs that collapsed there.
        n_healthy: Held-out runs that did not.
        healthy_alarmed: Share of healthy runs in which it ever raised an alarm; None: not measured.
        union: What is known of all detectors of the same file together; None: nothing.
        inputs: By column of `records.steps.STEPS`, the name it was logged under where the detector was tuned, if that
            name holds another quantity than the column (an estimate, a truncated value).
        reward: Where the rewards lay.
        lengths: The shortest and longest mean length of responses, in tokens; None: not known.
    """

    detector: Detector
    false_alarms: Rate | None
    recall: Rate | None
    median_lead: float | None
    study: str
    n_collapsed: int
    n_healthy: int
    healthy_alarmed: Rate | None = None
    union: Union | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)
    reward: RewardRange = "any"
    lengths: tuple[float, float] | None = None

    @property
    def words(self) -> str:
        """The measured error rates and where they were measured, as a phrase: they need not hold anywhere else."""
        runs = f"{self.study}: {self.n_collapsed} collapsed and {self.n_healthy} healthy runs"
        if self.false_alarms is None:
            return f"rate not measured ({runs})"
        value, low, high = self.false_alarms
        text = f"false alarms per 1,000 healthy updates: {value:.2g} [{low:.2g}, {high:.2g}]"
        if self.healthy_alarmed is not None:
            text += f", in {self.healthy_alarmed.percent} of healthy runs"
        text += f" (measured on {runs})"
        if self.union is not None and self.union.healthy_alarmed is not None and self.union.detectors > 1:
            where = "" if self.union.study == self.study else f" ({self.union.study})"
            alarmed = self.union.healthy_alarmed.percent
            text += f"; any of the {self.union.detectors} detectors: in {alarmed} of healthy runs{where}"
            text += f", {self.union.elsewhere.words}" if self.union.elsewhere else ""
        return f"{text}; not known here"


def load_calibrations(path: str | Path = DEFAULTS) -> tuple[Calibration, ...]:
    """The detectors of a file that `lab calibrate` or `lab analyze prediction` wrote, by default those of the package.

    Raises:
        UsageError: The file cannot be read, or names a signal that does not exist.
    """
    whole = _read(path)
    try:
        entries = whole["detectors"]
        if not isinstance(entries, list) or not entries:
            raise ValueError("not a list with entries")
        union = whole.get("union")
        together = union and Union(
            len(entries),
            _rate(union["healthy_alarmed"]),
            _rate(union["recall"]),
            str(union.get("study", whole.get("study", ""))),
            _elsewhere(union.get("elsewhere")),
        )
        shared = {
            "union": together,
            "inputs": dict(whole.get("inputs", {})),
            "reward": whole.get("reward", "any"),
            "lengths": _lengths(whole.get("lengths")),
        }
        found = tuple(_calibration(entry, shared) for entry in entries)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise UsageError(
            f"detectors {path}: no file of detectors ({error}); vcpo-bench lab calibrate writes one"
        ) from error
    for one in found:
        SIGNALS.get(one.detector.signal)
    return found


def load_verdict_rates(path: str | Path = DEFAULTS) -> VerdictRates | None:
    """How often the verdict was wrong where this file was made; None: it was not measured there.

    Raises:
        UsageError: The file cannot be read.
    """
    whole = _read(path)
    entry = whole.get("verdict")
    if not entry:
        return None
    try:
        return VerdictRates(
            Rate(*map(float, entry["found"])),
            Rate(*map(float, entry["false"])),
            str(whole["study"]),
            int(entry["n_collapsed"]),
            int(entry["n_other"]),
        )
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise UsageError(
            f"detectors {path}: no file of detectors ({error}); vcpo-bench lab calibrate writes one"
        ) from error


def chosen_calibrations(given: Sequence[Calibration] | str | Path | None) -> Sequence[Calibration]:
    """What a caller names: calibrations, a file of them, or None for those of the package."""
    if given is None:
        return load_calibrations()
    return load_calibrations(given) if isinstance(given, str | Path) else given


def _read(path: str | Path) -> dict[str, Any]:
    """The file as a dictionary; one of `lab analyze prediction` is the list of detectors alone."""
    try:
        whole = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"detectors {path}: cannot be read ({error.strerror}); name an exported file") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"detectors {path}: no file of detectors; vcpo-bench lab calibrate writes one") from error
    return whole if isinstance(whole, dict) else {"detectors": whole}


def _calibration(entry: Mapping[str, Any], shared: Mapping[str, Any]) -> Calibration:
    """One entry; a rate from too few runs is dropped, whoever wrote it."""
    window, persistence, collapsed, runs = (
        int(entry[name]) for name in ("window", "persistence", "n_collapsed", "n_healthy")
    )
    detector = Detector(str(entry["signal"]), window, float(entry["threshold"]), persistence)
    healthy, both = runs >= LEAST_RUNS, min(collapsed, runs) >= LEAST_RUNS
    lead = entry["median_lead"]
    false_alarms = entry["false_alarms_per_1000_healthy_updates"]
    return Calibration(
        detector,
        _rate(false_alarms) if healthy else None,
        _rate(entry["recall"]) if both else None,
        float(lead) if both and lead is not None else None,
        str(entry["study"]),
        collapsed,
        runs,
        _rate(entry.get("healthy_alarmed")) if healthy else None,
        **shared,
    )


def _lengths(values: Sequence[float] | None) -> tuple[float, float] | None:
    if values is None:
        return None
    low, high = values
    return float(low), float(high)


def _elsewhere(entry: Mapping[str, Any] | None) -> Elsewhere | None:
    if entry is None:
        return None
    return Elsewhere(float(entry["low"]), float(entry["high"]), int(entry["studies"]))


def _rate(values: Sequence[float] | None) -> Rate | None:
    return Rate(*map(float, values)) if values else None
