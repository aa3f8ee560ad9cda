"""What decides at once, without the patience of a rule: numbers that are not finite, a reward that is gone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcpo_bench.analysis.diagnosis.small_batch import rose_beyond_noise
from vcpo_bench.analysis.diagnosis.unit_reward import to_unit
from vcpo_bench.analysis.logs.read import OWN
from vcpo_bench.analysis.logs.run import LoggedRun, Series
from vcpo_bench.analysis.wording import listed

ROWS = 3
"""Rows up to the end of the log that must show it."""
SKIPPED = 20
"""Rows before, and rows to the end, by which the gradient alone shows it: scalers skip updates of healthy runs."""
MEASURED = 0.9
"""Share of the rows before in which it must have been finite: elsewhere it is not measured in every row."""
GRADIENT = "grad_norm"
UPDATED = (GRADIENT, "loss", "entropy")
"""Where an update that was not finite shows; the gradient, two of them, or the only one logged, must."""
CHANCE = 1e-3
"""Chance at most that a reward is on its floor for so long, from how often it was there before."""
FELL = 0.1
"""Reward that a run must have had above its floor, as a share of its range."""
GONE = 0.25
"""Share of the best that a reward must be below in each row to be gone."""


class HardEvidence(NamedTuple):
    """When it began, a sentence, and the column that shows it where that is not the reward."""

    step: float
    text: str
    column: str = ""


def hard_evidence(run: LoggedRun) -> HardEvidence | None:
    """The earliest hard evidence that lasts to the end of the log; None without any."""
    found = [one for one in (_not_finite(run), _on_its_floor(run), _gone(run)) if one is not None]
    return min(found, key=lambda one: one.step, default=None)


def _not_finite(run: LoggedRun) -> HardEvidence | None:
    logged = [run.series[name] for name in UPDATED if name in run.series]
    broken = [(one, at) for one in logged if (at := _tail(~np.isfinite(one.values))) is not None]
    if not broken or not all(np.isfinite(one.values).any() for one, _ in broken):
        return None
    skipped = len(broken) < min(2, len(logged))  # such updates: all else stays finite
    if skipped and (run.framework == OWN or not _skips(run, *broken[0])):  # how ours ended is on record
        return None
    step, column = min((float(one.steps[at]), one.column.name) for one, at in broken)
    names = listed([one.column.label for one, _ in broken])
    said = f"{names} {'is' if len(broken) == 1 else 'are'} not finite from step {step:g} to the end"
    return HardEvidence(step, f"{said}, where trainers skip the update" if skipped else said, column)


def _skips(run: LoggedRun, gradient: Series, at: int) -> bool:
    """Whether this is a gradient that was measured and is not finite from a row on, in a run that does not rise."""
    finite = np.isfinite(gradient.values)
    if gradient.column.name != GRADIENT or min(at, finite.size - at) < SKIPPED or finite[:at].mean() < MEASURED:
        return False
    steps, rewards = run.series["reward"].finite if "reward" in run.series else (np.empty(0), np.empty(0))
    since = rewards[steps >= gradient.steps[at]]
    return since.size < ROWS or not rose_beyond_noise(since, None)


def _on_its_floor(run: LoggedRun) -> HardEvidence | None:
    series = run.series.get("reward")
    if series is None:
        return None
    steps, values = series.finite
    if not values.size:
        return None
    lowest = float(values.min())
    floor = values <= lowest
    at = _tail(floor)
    if at is None or at < ROWS or values[:at].mean() - lowest < FELL * float(np.ptp(values)):
        return None
    if float(floor[:at].mean()) ** (values.size - at) > CHANCE:
        return None
    rows = values.size - at
    return HardEvidence(
        float(steps[at]), f"training reward is {lowest:g} in each of the last {rows} rows, from step {steps[at]:g} on"
    )


def _gone(run: LoggedRun) -> HardEvidence | None:
    """A reward far below its best in each of the last rows, and seldom there before."""
    series = run.series.get("reward")
    steps, values = series.finite if series is not None else (np.empty(0), np.empty(0))
    if values.size < 2 * ROWS:
        return None
    scaled, _ = to_unit(values)
    if scaled is None:
        return None
    values = scaled
    best = float(np.convolve(values, np.full(ROWS, 1 / ROWS), mode="valid").max())
    low = values < GONE * best
    at = _tail(low)
    if at is None or at < ROWS or best - values[at:].mean() < FELL * max(best, 1.0):
        return None
    before = (int(low[:at].sum()) + 1) / (at + 2)  # of few rows, none low is no proof that none can be
    if before ** (values.size - at) > CHANCE:
        return None
    rows = values.size - at
    return HardEvidence(
        float(steps[at]),
        f"training reward is at {values[at:].mean() / best:.0%} of its best in the last {rows} rows, from step "
        f"{steps[at]:g} on",
    )


def _tail(flags: np.ndarray) -> int | None:
    """Where the flags begin to be set to the end; None where fewer than `ROWS` are."""
    unset = np.flatnonzero(~flags)
    begin = int(unset[-1]) + 1 if unset.size else 0
    return begin if flags.size - begin >= ROWS else None
