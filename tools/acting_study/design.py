"""What the acting study runs: its parents, the updates at which something is done, and what is done then."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

Group = Literal["risky", "calm"]
When = Literal["never", "alarm", "placebo", "false alarm"]

METHOD = "reinforce"
"""Of every parent."""
LAG = 16
STEPS = 300
WAVES = (tuple(range(200, 208)), tuple(range(208, 216)))
"""Seeds in the order in which they were registered: what became of seeds 0 and 1 at some of these rates is known. The
boundary study has the same seeds at the same places, at other learning rates. Seeds of a wave know the alarms of that
wave only."""
SEEDS = tuple(seed for wave in WAVES for seed in wave)
RATES = {"walk": 2e-4, "chain": 1e-4}
"""Learning rate of the risky parents of each task."""
CALMER = 4
"""The learning rate of calm parents is that of the risky ones, divided by this."""
NOTHING, SLOWER = "nothing", "lr/3"
SLOWDOWN = 3
"""What `SLOWER` divides the learning rate by."""
DETECTOR = "kl_length(window=5,threshold=5.509535076816002,persistence=1)"
"""What raises the alarm: `--stop-on-alarm` at this record level, as packaged when the study was registered."""
FOURTH: tuple[When, str] = ("alarm", "clip")
"""Registered after the page of the others was out; its contrasts are a family of their own."""
GROUPS: tuple[Group, ...] = ("risky", "calm")
PLAN: Mapping[Group, tuple[tuple[When, str], ...]] = {
    "risky": (("alarm", "vcpo"), ("alarm", "tis"), ("alarm", SLOWER), ("placebo", "vcpo"), FOURTH),
    "calm": (("false alarm", "vcpo"), ("false alarm", SLOWER)),
}
"""When something is done to the parents of each group, and what: another method, or a smaller learning rate."""
CORE_SECONDS = 0.05
"""Per update of 128 responses, of one core."""


@dataclass(frozen=True, order=True)
class Parent:
    """A run to which something may be done.

    Attributes:
        task: Task expression.
        group: Whether its learning rate is one at which runs fail.
        seed: Of prompts and sampling.
    """

    task: str
    group: Group
    seed: int

    @property
    def lr(self) -> float:
        """Its learning rate."""
        return RATES[self.task] / (CALMER if self.group == "calm" else 1)


class Heard(NamedTuple):
    """What a parent that has ended says.

    Attributes:
        alarm: Updates applied at the first alarm of the detector; NaN: it was silent.
        updates: How many it made: fewer than `STEPS` only if it ended as nan.
    """

    alarm: float
    updates: int


class Policy(NamedTuple):
    """One way to treat a parent.

    Attributes:
        parent: The run.
        when: What decides the update.
        act: What is done.
    """

    parent: Parent
    when: When
    act: str


@dataclass(frozen=True, order=True)
class Branch:
    """A parent continued otherwise.

    Attributes:
        parent: The run.
        act: What is done: a method, or `SLOWER`.
        at: Updates applied before.
    """

    parent: Parent
    act: str
    at: int


def parents() -> list[Parent]:
    """Every parent of the study."""
    return [Parent(task, group, seed) for task in RATES for group in GROUPS for seed in SEEDS]


def branches(heard: Mapping[Parent, Heard]) -> dict[Policy, Branch | None]:
    """What each treatment of each parent is; None: nothing is done, and the parent itself is its outcome.

    Args:
        heard: Of every parent.
    """
    found: dict[Policy, Branch | None] = {}
    for parent in parents():
        found[Policy(parent, "never", NOTHING)] = None
        for when, act in PLAN[parent.group]:
            at = update_of(parent, when, heard)
            found[Policy(parent, when, act)] = None if at is None else Branch(parent, act, at)
    return found


def update_of(parent: Parent, when: When, heard: Mapping[Parent, Heard]) -> int | None:
    """The update at which something is done to a parent; None: there is none within its updates."""
    alarms = {seed: heard[Parent(parent.task, "risky", seed)].alarm for seed in WAVES[wave_of(parent.seed)]}
    own = alarms[parent.seed]
    at = own if when == "alarm" else placebo(parent, alarms) if when == "placebo" else _borrowed(own, parent, alarms)
    return int(at) if at < heard[parent].updates else None


def wave_of(seed: int) -> int:
    """Which wave a seed is of."""
    return next(number for number, wave in enumerate(WAVES) if seed in wave)


def placebo(parent: Parent, alarms: Mapping[int, float]) -> float:
    """An update that knows nothing of this run; NaN where all other seeds of its task and wave were silent.

    The updates from 1 to `2m - 1`, where m is the mean alarm of the others, are cut into as many equal strata as there
    are seeds, and each seed takes the midpoint of another one. Where all seeds have the same m, the mean over seeds is
    m; it is smaller where `STEPS` cuts the range short.

    Args:
        parent: A risky parent; its task and seed fix the stratum.
        alarms: Alarms of the risky parents of its task and wave, by seed.
    """
    mean = _others(parent, alarms)
    if math.isnan(mean):
        return math.nan
    seeds = sorted(alarms)
    draws = np.random.default_rng(zlib.crc32(parent.task.encode()) + wave_of(parent.seed))
    strata = draws.permutation(len(seeds))
    share = (strata[seeds.index(parent.seed)] + 0.5) / len(seeds)
    return float(round(0.5 + share * (min(2 * round(mean), STEPS) - 1)))


def _borrowed(own: float, parent: Parent, alarms: Mapping[int, float]) -> float:
    """The alarm of the risky parent of the same seed, else the mean of the others."""
    return float(np.round(_others(parent, alarms))) if math.isnan(own) else own


def _others(parent: Parent, alarms: Mapping[int, float]) -> float:
    others = [alarm for seed, alarm in alarms.items() if seed != parent.seed and not math.isnan(alarm)]
    return float(np.mean(others)) if others else math.nan
