"""What the phase study runs: its units, its learning rates, and the rule that chooses the next run."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low

import numpy as np

TASKS = ("walk", "chain")
METHODS = (
    "reinforce",
    "tis",
    "clip",
    "gspo(high=0.04,low=0.03)",
    "vespo",
    "vcpo",
    "vcpo(ess=off)",
    "vcpo(baseline=group)",
    "vcpo(ess=off)+lr-matched",
)
LAGS = (4, 16, 64)
WITHOUT_LAG = ("reinforce", "vcpo")
"""Methods also run at lag 0. There the ratio is 1, and the others take one of the same two updates."""
STEPS = 300
LADDER = tuple(2.5e-5 * 2**rung for rung in range(9))
"""The learning rates, 2.5e-5 to 6.4e-3."""
FIRST_RUNG = 4
"""Where the search starts when no seed has been there: 4e-4."""
CHECKED = 0.25
"""Share of units that get one more run, far from their boundary, to check that failures grow with the rate."""

Outcomes = Mapping[int, bool]
"""Whether the run at each rung of the ladder failed."""


@dataclass(frozen=True, order=True)
class Unit:
    """One search for the largest learning rate that survives.

    Attributes:
        seed: Of prompts and sampling.
        task: Task expression.
        method: Method expression.
        staleness: Lag, in updates.
    """

    seed: int
    task: str
    method: str
    staleness: int

    def draws(self) -> np.random.Generator:
        """Random numbers of this unit alone, the same in every process."""
        return np.random.default_rng(zlib.crc32(repr(self).encode()))


@dataclass(frozen=True)
class Plan:
    """What is searched for every seed.

    Attributes:
        tasks: Task expressions.
        methods: Method expressions, each at every lag of `LAGS`.
        without_lag: Methods that are searched at lag 0 as well.
    """

    tasks: tuple[str, ...]
    methods: tuple[str, ...]
    without_lag: tuple[str, ...] = ()

    def units(self, seed: int) -> list[Unit]:
        """The units of one seed."""
        places = [(method, lag) for lag in LAGS for method in self.methods] + [(one, 0) for one in self.without_lag]
        return [Unit(seed, task, method, lag) for task in self.tasks for method, lag in places]


PLAN = Plan(TASKS, METHODS, WITHOUT_LAG)
"""Of the phase study."""


def bracket(outcomes: Outcomes) -> tuple[int, int]:
    """The boundary of a unit: the last rung that survived below the first that failed, and the next that was tried.

    Returns:
        `(low, high)`: -1 where none survived below, `len(LADDER)` where none failed.
    """
    failed = [rung for rung, lost in outcomes.items() if lost]
    high = min(failed, default=len(LADDER))
    return max((rung for rung, lost in outcomes.items() if not lost and rung < high), default=-1), high


def next_rung(unit: Unit, outcomes: Outcomes, guess: int) -> int | None:
    """The rung to run next; None: the search of this unit has ended.

    From the guess it goes up while runs survive and down while they fail, by 1, 2, 4 rungs; then it halves what is open
    until two neighboring rungs differ, or an end of the ladder is reached.

    Args:
        unit: Whose search.
        outcomes: What its runs ended as.
        guess: Where to start.
    """
    if not outcomes:
        return guess
    low, high = bracket(outcomes)
    if high - low == 1:
        return _check(unit, outcomes, low, high)
    stride, top = 2 ** (len(outcomes) - 1), len(LADDER) - 1
    if high == len(LADDER):
        return min(low + stride, top)
    if low == -1:
        return max(high - stride, 0)
    return (low + high) // 2


@dataclass(frozen=True)
class Search:
    """A unit's own search, replayed: what it asked for, whoever else made more runs of the unit.

    Attributes:
        outcomes: Whether each run of the search failed, in the order in which it asks for them.
        check: The rung of the check run, if it was made.
        wanted: The rung it asks for next; None: the search has ended.
    """

    outcomes: Outcomes
    check: int | None
    wanted: int | None


def search(unit: Unit, ended: Outcomes, guess: int) -> Search:
    """Replay the search of a unit over all of its runs that have ended.

    Args:
        unit: Whose search.
        ended: Every run of the unit, also those that only lend step scales; these count where the search asks for them.
        guess: Where it starts.
    """
    seen: dict[int, bool] = {}
    while (rung := next_rung(unit, seen, guess)) is not None and rung in ended:
        if _closed(seen):
            return Search(seen, rung, None)
        seen[rung] = ended[rung]
    return Search(seen, None, rung)


def searches(found: Mapping[Unit, Outcomes], units: Iterable[Unit]) -> dict[Unit, Search]:
    """The search of every unit, begun at the median boundary of lower seeds, else at `FIRST_RUNG`.

    Args:
        found: The runs that have ended.
        units: Whose searches, those of lower seeds first.
    """
    lows: dict[tuple[str, str, int], list[int]] = {}
    done: dict[Unit, Search] = {}
    for unit in units:
        alike = lows.setdefault((unit.task, unit.method, unit.staleness), [])
        done[unit] = search(unit, found.get(unit, {}), max(median_low(alike), 0) if alike else FIRST_RUNG)
        if done[unit].outcomes:
            alike.append(bracket(done[unit].outcomes)[0])
    return done


def wanted(seeds: Sequence[int], found: Mapping[Unit, Outcomes], plan: Plan = PLAN) -> list[tuple[Unit, int]]:
    """The runs to make now: one for each open unit of the lowest seed that has open ones."""
    known = sorted({*seeds, *(unit.seed for unit in found)})
    own = searches(found, [unit for seed in known for unit in plan.units(seed)])
    for seed in seeds:
        open_ones = [(unit, own[unit].wanted) for unit in plan.units(seed)]
        if runs := [(unit, rung) for unit, rung in open_ones if rung is not None]:
            return runs
    return []


def _closed(outcomes: Outcomes) -> bool:
    low, high = bracket(outcomes)
    return bool(outcomes) and high - low == 1


def _check(unit: Unit, outcomes: Outcomes, low: int, high: int) -> int | None:
    """A rung far from the boundary, for some units; None: this one needs no check, or has had one."""
    draws = unit.draws()
    far = [rung for rung in range(len(LADDER)) if rung < low - 1 or rung > high + 1]
    if draws.random() >= CHECKED or not far:
        return None
    rung = int(draws.choice(far))
    return None if rung in outcomes else rung
