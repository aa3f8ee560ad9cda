"""What happened, in the order in which it began, as one sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence

from vcpo_bench.analysis.diagnosis.diagnosis import FELL, PART_LOST, Cause, Link, Outcome
from vcpo_bench.analysis.logs.run import PART

_MOST = 4
"""Signs before the fall that are named."""
STATES = ("silent anchor",)
"""Causes that hold all along and begin nowhere."""
_FALL = {"reward": "reward down", "eval_reward": "evaluation reward down"}


def find_chain(outcome: Outcome, causes: Sequence[Cause]) -> tuple[Link, ...]:
    """The signs of the probable causes up to the fall, the earliest first, then the fall; empty without such causes."""
    probable = [one for one in causes if one.standing == "probable" and one.name not in STATES]
    latest = math.inf if math.isnan(outcome.onset) else outcome.onset + max(outcome.resolution, 0.0)
    first: dict[str, float] = {}
    fell = outcome.verdict in FELL and _fall(outcome, probable)
    for step, sign in sorted((sign for one in probable for sign in one.signs), key=lambda sign: sign[0]):
        if step <= latest and sign != fell:
            first.setdefault(sign, step)
    links = [Link(sign, step) for sign, step in list(first.items())[:_MOST]]
    if links and fell:
        links.append(Link(fell, outcome.onset))
    return tuple(links)


def _fall(outcome: Outcome, causes: Sequence[Cause]) -> str:
    if outcome.column != PART:
        return _FALL.get(outcome.column, "")  # numbers that are not finite: the reward may be as it was
    lost = [sign for one in causes for _, sign in one.signs if one.name == PART_LOST and sign.endswith(" down")]
    return lost[0] if lost else "a part of the reward down"


def chain_sentence(chain: Sequence[Link]) -> str:
    """`Engine gap up from step 88, ESS down from 92, reward down from 131.`; empty for an empty chain."""
    said = ", ".join(f"{one.sign} from {'' if number else 'step '}{one.step:g}" for number, one in enumerate(chain))
    return f"{said[:1].upper()}{said[1:]}." if said else ""
