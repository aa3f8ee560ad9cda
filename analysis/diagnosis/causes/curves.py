"""Causes that are seen in the curves as a whole: train against evaluation, and a resume."""

from __future__ import annotations

import numpy as np

from vcpo_bench.analysis.diagnosis.causes.story import Case, Story
from vcpo_bench.analysis.diagnosis.diagnosis import Cause
from vcpo_bench.analysis.tolerance import EQUAL

GAP = 0.1
"""Reward that training must gain while evaluation loses as much."""
RESUME_WINDOW = 10
"""Rows on each side of a resume that are compared."""
JUMP = 6.0
EDGE = 3
"""Rows right at a resume between which half of the change must lie: a slope that runs through it is no jump."""


def train_eval_gap(story: Story) -> Cause | None:
    """Training reward rises while evaluation falls: reward hacking, or memorized prompts."""
    case = Case(story, "train/eval gap")
    if not (story.has("reward") and story.has("eval_reward")):
        return None
    steps, evaluations = story.run.series["eval_reward"].finite
    train_steps, train = story.run.series["reward"].finite
    if evaluations.size < 4 or train.size < 20:
        return None
    best = int(np.argmax(evaluations))
    lost = float(evaluations[best] - evaluations[-3:].mean())
    before = train[train_steps <= steps[best]][-RESUME_WINDOW:]
    if not before.size:
        return None
    gained = float(train[-RESUME_WINDOW:].mean() - before.mean())
    if lost > GAP + EQUAL and gained > GAP + EQUAL:
        case.supports(
            float(steps[best]),
            f"since step {steps[best]:g} training reward gained {gained:.2f} while evaluation reward lost {lost:.2f}",
            "evaluation and training apart",
        )
    elif lost > GAP + EQUAL and gained > -lost / 2 + EQUAL:
        case.supports(
            float(steps[best]),
            f"since step {steps[best]:g} evaluation reward lost {lost:.2f}, training reward only {max(-gained, 0):.2f}",
            "evaluation and training apart",
        )
        case.opposes("training reward did not rise")
    return case.close()


def resume(story: Story) -> Cause | None:
    """A run was resumed, and something jumped there: lost optimizer state, another engine, another data order."""
    case = Case(story, "resume jump")
    for one in story.run.resumes:
        jumped = [text for name in story.run.series if (text := _jump(story, name, one.step))]
        where = f"the log was resumed at step {one.step:g} (it had reached {one.back_from:g})"
        if jumped:
            case.supports(one.step, f"{where}, and {jumped[0]}", "a jump at the resume")
            for more in jumped[1:4]:
                case.supports(one.step, f"at the same resume {more}")
        else:
            case.opposes(f"{where} without a jump of any signal")
    return case.close()


def _jump(story: Story, name: str, at: float) -> str:
    """A sentence where a column is elsewhere right after a step than right before it, else empty."""
    series = story.run.series[name]
    if name in ("seconds", "eval_reward", "lr"):
        return ""
    steps, values = series.finite
    before, after = values[steps < at][-RESUME_WINDOW:], values[steps >= at][:RESUME_WINDOW]
    if before.size < 4 or after.size < 4:
        return ""
    middle, now = np.median(before), np.median(after)
    spread = max(
        1.4826 * float(np.median(np.abs(before - middle))),
        series.column.floor * (abs(middle) if series.column.log else 1),
    )
    step = abs(float(np.median(after[:EDGE]) - np.median(before[-EDGE:])))
    if abs(now - middle) < JUMP * spread or step < abs(now - middle) / 2:
        return ""
    return f"{story.label(name)} went from {middle:.3g} to {now:.3g}"
