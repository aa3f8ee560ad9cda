"""Fact 25: a speed-up to target is a speed-up per step times a change in the number of steps."""

from __future__ import annotations

import numpy as np

from scorecard.fact import Fact, Part
from scorecard.facts.f14_time_to_target import ASYNC, PAGE, timings
from scorecard.rules import mean_within
from scorecard.tables import Tables

SPLIT = "(a) split synchronous"
GPU_HOURS, STEPS, PUBLISHED = (420.2, 168.9), (300, 220), (2.49, 1.82, 1.36)
TOLERANCE, CLOSED = 0.01, (0.9, 1.1)


def judge(tables: Tables) -> list[Part]:
    """The published figures recomputed, and the same two factors for real processes here."""
    rows = timings(tables).xs("vcpo", level="method")
    parts = [_published()]
    for task, own in rows.groupby(level="task"):
        ways = own.droplevel("task")
        one, other = ways.loc[ASYNC], ways.loc[SPLIT]
        total = np.array(other["seconds"]) / np.array(one["seconds"])
        per_update = np.array(one["rate"]) / np.array(other["rate"])
        fewer = np.array(other["updates"]) / np.array(one["updates"])
        figure = (
            f"k = 4 against split synchronous: {total.mean():.2f} to target = {per_update.mean():.2f} per update x "
            f"{fewer.mean():.2f} in updates; product over total: {{}}"
        )
        parts.append(mean_within(f"vcpo on {task}", figure, per_update * fewer / total, *CLOSED))
    return parts


def _published() -> Part:
    total, steps = GPU_HOURS[0] / GPU_HOURS[1], STEPS[0] / STEPS[1]
    found = (total, total / steps, steps)
    worst = max(abs(one / other - 1) for one, other in zip(found, PUBLISHED, strict=True))
    figure = f"from GPU-hours and steps: {found[0]:.2f} = {found[1]:.2f} per step x {found[2]:.2f} in steps"
    return Part("published figures", "reproduced" if worst <= TOLERANCE else "refuted", figure, worst)


FACT = Fact(
    number=25,
    title="Parts of a speed-up",
    order=105,
    statement="Multi-turn 2.49 times as fast is 1.82 per step times 1.36 from stopping at step 220 instead of 300.",
    source="README of the VCPO repository, GPU-hours and steps; an inference of this project",
    rule=(
        "The published figures follow from the published GPU-hours and steps within 1%. Here (asynchronous benchmark, "
        "rules 1.0, `vcpo`, k = 4 against split synchronous): the speed-up per update times that in updates is the "
        "speed-up to target within 10% (reproduced) or not (refuted), t over seeds."
    ),
    judge=judge,
    pages=(PAGE,),
)
