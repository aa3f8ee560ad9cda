"""Causes in the policy and its update: entropy, gradients, non-finite numbers."""

from __future__ import annotations

import numpy as np

from vcpo_bench.analysis.diagnosis.causes.story import Case, Story
from vcpo_bench.analysis.diagnosis.diagnosis import Cause

ENTROPY_LEFT = 0.2
"""Entropy below this share of its start is called lost."""
NOT_FINITE = "numbers not finite"
"""The sign of it."""


def entropy(story: Story) -> Cause | None:
    """The policy stopped exploring, or became noise."""
    case = Case(story, "entropy")
    if not story.has("entropy"):
        return None
    case.take(story.departed("entropy"))
    start = story.start("entropy")
    step = story.first_below("entropy", ENTROPY_LEFT * start) if start > 0 else None
    case.past("entropy", step, f"below a fifth of its start, {start:.3g},", "entropy down")
    case.opposes(story.stayed("entropy"))
    return case.close()


def reference(story: Story) -> Cause | None:
    """The policy left its reference."""
    case = Case(story, "distance to the reference")
    case.take(story.rose("kl_reference"))
    case.opposes(story.stayed("kl_reference"))
    return case.close()


def gradient(story: Story) -> Cause | None:
    """A gradient exploded, or numbers were not finite."""
    case = Case(story, "gradient or non-finite")
    broken = False
    for name, series in story.run.series.items():
        bad = ~np.isfinite(series.values)
        if bad.any() and name != "log_weight_max":
            step = float(series.steps[np.argmax(bad)])
            broken = True
            count = f"is not finite in {int(bad.sum())} of {bad.size} rows, first"
            case.supports(step, f"{story.label(name)} {count} {story.when(step, 'at')}", NOT_FINITE)
    case.take(story.rose("grad_norm"))
    case.take(story.rose("nonfinite"))
    if not broken:
        case.opposes(story.stayed("grad_norm"))
    return case.close()
