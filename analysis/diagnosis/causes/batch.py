"""Causes in the batches: lengths and truncation, groups without reward variance."""

from __future__ import annotations

from vcpo_bench.analysis.diagnosis.causes.story import Case, Story
from vcpo_bench.analysis.diagnosis.diagnosis import Cause

LONGER = 2.0
TRUNCATED = 0.3
NO_SIGNAL = 0.8
SOLVED = 0.95


def length(story: Story) -> Cause | None:
    """Responses grew until they were cut, or shrank to nothing."""
    case = Case(story, "truncation and length")
    for column in ("length_mean", "truncated_share"):
        case.take(story.departed(column))
    if story.has("length_mean"):
        start = story.start("length_mean")
        step = story.first_above("length_mean", LONGER * start)
        if step is not None:
            case.supports(
                step, f"{story.label('length_mean')} is above twice its start, {start:.3g}, {story.when(step)}"
            )
    step = story.first_above("truncated_share", TRUNCATED)
    if step is not None:
        case.supports(step, f"{story.label('truncated_share')} is above {TRUNCATED:.0%} {story.when(step)}")
    case.opposes(story.stayed("truncated_share"), story.stayed("length_mean"))
    return case.close()


def zero_variance(story: Story) -> Cause | None:
    """Most groups give no gradient: all their rewards are equal."""
    case = Case(story, "zero-variance groups")
    case.take(story.rose("zero_variance_share"))
    step = story.first_above("zero_variance_share", NO_SIGNAL)
    if step is not None:
        case.supports(step, f"{story.label('zero_variance_share')} is above {NO_SIGNAL:.0%} {story.when(step)}")
    case.take(story.fell("reward_std"))
    case.opposes(story.stayed("zero_variance_share"), story.stayed("reward_std"))
    if story.first_above("reward", SOLVED) is not None:
        case.opposes(f"training reward reached {SOLVED:.0%}: groups without variance are then solved, not broken")
    return case.close()
