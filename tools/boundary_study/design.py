"""What the boundary study runs: its places, and the rule that finds a rate at which about half of the seeds fail."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

STEPS = 300
PILOT_SEEDS = tuple(range(100, 104))
"""Seeds that choose the rate of a place; they are in no analysis."""
SEEDS = tuple(range(200, 232))
"""Seeds of the main runs. 200 to 215 are also those of the acting study, which runs `reinforce` at lag 16 on `walk` and
`chain` at other learning rates: the same prompts, so the two are not independent there."""
MOST_RATES = 5
"""Rates that the search of a place may try."""
SHARE = (0.2, 0.8)
"""A place counts if the share of its main seeds that failed lies between these, ends included."""
LEAST_PLACES = 8
"""Fewer places than this give no numbers."""
LEAST_GROUPS = 5
"""Nor do fewer groups of places, which are what the intervals take to be independent."""
CORE_SECONDS = 0.05
"""Per update of 128 responses, of one core."""

Outcomes = Mapping[tuple[float, int], bool]
"""Whether each run of a place failed, by rung and seed."""


@dataclass(frozen=True, order=True)
class Place:
    """A configuration, all but its learning rate.

    Attributes:
        task: Task expression.
        method: Method expression.
        staleness: Lag, in updates.
        guess: Learning rate at which the search starts.
    """

    task: str
    method: str
    staleness: int
    guess: float

    @property
    def group(self) -> tuple[str, str]:
        """Task and method. Its places share seeds, and where their rates are equal their runs begin alike."""
        return self.task, self.method

    def rate(self, rung: float) -> float:
        """The learning rate of a rung: the guess is rung 0, and each rung is 2^0.5 times the one below."""
        return float(f"{self.guess * 2 ** (rung / 2):.4g}")


_GUESSES = {
    (16, "walk"): {"reinforce": 1.4e-4, "tis": 5.6e-4, "clip": 1.1e-3, "vcpo(ess=off)": 8e-4},
    (16, "chain"): {"reinforce": 1.4e-4, "tis": 1.1e-3, "clip": 5.6e-4, "vcpo(ess=off)": 1.6e-3},
    (16, "walk-eos"): {"reinforce": 2.8e-4, "tis": 1.1e-3},
    (64, "walk"): {"reinforce": 7e-5, "tis": 5.6e-4, "clip": 1.6e-3, "vcpo(ess=off)": 8e-4},
    (64, "chain"): {"reinforce": 7e-5, "tis": 1.1e-3, "clip": 5.6e-4, "vcpo(ess=off)": 1.6e-3},
    (64, "walk-eos"): {"reinforce": 7e-5, "tis": 1.1e-3},
    (4, "walk"): {"reinforce": 5.6e-4, "tis": 1.1e-3},
    (4, "chain"): {"reinforce": 2.8e-4, "tis": 1.1e-3},
}
"""Between the largest rate that survived and the smallest that failed in the calibration study (one seed, 120 updates);
where none failed, and for the method that was not in it, from its neighbors."""

PLACES = tuple(
    Place(task, method, lag, guess) for (lag, task), own in _GUESSES.items() for method, guess in own.items()
)
"""In the order in which they are run."""
GROUPS = tuple(dict.fromkeys(place.group for place in PLACES))


def next_rung(failures: Mapping[float, int]) -> float | None:
    """The rung that the pilot tries next; None: it has ended.

    From the guess it goes up by one while no seed fails and down by one while all do; between one where none fails and
    one where all do it halves. It ends where some fail and some survive, or after `MOST_RATES` rungs.

    Args:
        failures: How many of the pilot seeds failed at each rung so far.
    """
    if not failures:
        return 0.0
    if len(failures) == MOST_RATES or _mixed(failures):
        return None
    low, high = _bracket(failures)
    if high is None or low is None:
        return max(failures) + 1 if high is None else min(failures) - 1
    return (low + high) / 2


def chosen_rung(failures: Mapping[float, int]) -> float | None:
    """The rung of the main runs, from a pilot that has ended; None: none was found.

    It is the one where some pilot seeds failed and some survived; if there is none, the middle of the bracket.
    """
    if mixed := _mixed(failures):
        return mixed[0]
    low, high = _bracket(failures)
    return None if low is None or high is None else (low + high) / 2


def missing(outcomes: Outcomes) -> list[tuple[float, int]]:
    """The runs, by rung and seed, that a place needs now; none: it has ended."""
    failures = pilot(outcomes)
    rung = next_rung(failures)
    if rung is not None:
        return [(rung, seed) for seed in PILOT_SEEDS if (rung, seed) not in outcomes]
    rung = chosen_rung(failures)
    return [] if rung is None else [(rung, seed) for seed in SEEDS if (rung, seed) not in outcomes]


def wanted(found: Mapping[Place, Outcomes], places: Iterable[Place] = PLACES) -> list[tuple[Place, float, int]]:
    """The runs to make now, by place, rung and seed: those of the first place that has not ended."""
    for place in places:
        if runs := missing(found.get(place, {})):
            return [(place, rung, seed) for rung, seed in runs]
    return []


def pilot(outcomes: Outcomes) -> dict[float, int]:
    """How many pilot seeds failed at each rung where all of them have ended, in the order of rungs."""
    rungs = sorted({rung for rung, _ in outcomes})
    whole = [rung for rung in rungs if all((rung, seed) in outcomes for seed in PILOT_SEEDS)]
    return {rung: sum(outcomes[rung, seed] for seed in PILOT_SEEDS) for rung in whole}


def main_seeds(outcomes: Outcomes) -> dict[int, bool] | None:
    """Whether each main seed failed, if the pilot and all of them have ended; None: they have not."""
    failures = pilot(outcomes)
    rung = chosen_rung(failures) if next_rung(failures) is None else None
    if rung is None or any((rung, seed) not in outcomes for seed in SEEDS):
        return None
    return {seed: outcomes[rung, seed] for seed in SEEDS}


def counts(outcomes: Outcomes) -> bool:
    """Whether a place is analyzed: all main seeds have ended, and neither too few of them failed nor too many."""
    ended = main_seeds(outcomes)
    return ended is not None and SHARE[0] <= sum(ended.values()) / len(ended) <= SHARE[1]


def _mixed(failures: Mapping[float, int]) -> list[float]:
    return [rung for rung, failed in failures.items() if 0 < failed < len(PILOT_SEEDS)]


def _bracket(failures: Mapping[float, int]) -> tuple[float | None, float | None]:
    """The highest rung where none failed and the lowest where all did; None: there is none."""
    none = [rung for rung, failed in failures.items() if failed == 0]
    every = [rung for rung, failed in failures.items() if failed == len(PILOT_SEEDS)]
    return max(none, default=None), min(every, default=None)
