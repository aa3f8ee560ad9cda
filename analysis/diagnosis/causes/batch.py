"""Causes in the batches: lengths and truncation, groups without reward variance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.analysis.diagnosis.causes.story import Case, Story
from vcpo_bench.analysis.diagnosis.departures import start_size
from vcpo_bench.analysis.diagnosis.diagnosis import PART_LOST, Cause

Array = NDArray[np.float64]

LONGER = 2.0
SHORTER = 3.0
TRUNCATED = 0.3
NO_SIGNAL = 0.8
MOVED = 0.5
"""Change of a part of the reward, as a share of its larger end."""
SOLVED = 0.95


def length(story: Story) -> Cause | None:
    """Responses grew until they were cut, or shrank to nothing."""
    case = Case(story, "truncation and length")
    case.take(story.rose("length_mean"))
    case.take(story.rose("truncated_share"))
    if story.has("length_mean"):
        start = story.start("length_mean")
        gone, grown = (
            story.first_below("length_mean", start / SHORTER),
            story.first_above("length_mean", LONGER * start),
        )
        case.past("length_mean", gone, f"below a third of its start, {start:.3g},", "length down")
        case.past("length_mean", grown, f"above twice its start, {start:.3g},", "length up")
    step = story.first_above("truncated_share", TRUNCATED)
    if step is not None and story.start("truncated_share") < TRUNCATED:
        case.past("truncated_share", step, f"above {TRUNCATED:.0%}", "truncation up")
    case.opposes(story.stayed("truncated_share"), story.stayed("length_mean"))
    return case.close()


def part_of_the_reward(story: Story) -> Cause | None:
    """One part of the reward rose while another was lost: what is easy to earn was learned, the task was not."""
    case = Case(story, PART_LOST)
    changes = {name: (one.steps, *_ends(one.values)) for name, one in story.run.parts.items() if one.values.size >= 6}
    risen = [name for name, (_, start, end) in changes.items() if end - start > MOVED * max(abs(start), abs(end))]
    lost = [name for name, (_, start, end) in changes.items() if start - end > MOVED * max(abs(start), abs(end))]
    for name in risen if lost else ():
        steps, start, end = changes[name]
        began = _halfway(steps, story.run.parts[name].values, start, end)
        case.supports(began, f"{name} rose from {start:.2f} to {end:.2f}", f"{name} up")
    for name in lost if risen else ():
        steps, start, end = changes[name]
        began = _halfway(steps, story.run.parts[name].values, start, end)
        case.supports(began, f"{name} fell from {start:.2f} to {end:.2f}", f"{name} down")
    return case.close()


def _ends(values: Array) -> tuple[float, float]:
    """Medians of the first and of the last values."""
    size = start_size(values.size)
    return float(np.nanmedian(values[:size])), float(np.nanmedian(values[-size:]))


def _halfway(steps: Array, values: Array, start: float, end: float) -> float:
    """The first step at which a curve is past the middle of its way."""
    past = np.flatnonzero((values - (start + end) / 2) * np.sign(end - start) > 0)
    return float(steps[past[0]])


def zero_variance(story: Story) -> Cause | None:
    """Most groups give no gradient: all their rewards are equal."""
    case = Case(story, "zero-variance groups")
    case.take(story.rose("zero_variance_share"))
    step = story.first_above("zero_variance_share", NO_SIGNAL)
    case.past("zero_variance_share", step, f"above {NO_SIGNAL:.0%}", "share of equal groups up")
    case.take(story.fell("reward_std"))
    case.opposes(story.stayed("zero_variance_share"), story.stayed("reward_std"))
    if story.first_above("reward", SOLVED) is not None and story.between_0_and_1("reward"):
        case.opposes(f"training reward reached {SOLVED:.0%}: groups without variance are then solved, not broken")
    return case.close()
