"""What to use at a lag, at which share of the synchronous learning rate, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from vcpo_bench.analysis.advice.tables import Earned, Published, Tolerated, earned, published, tolerated

CLOSE = 0.5
"""A method is advised where it bears at least this share of what the best one bears."""
LOST = 0.1
"""A method is advised against where less than this share of the synchronous learning rate survives."""
SHORT = 24
"""Tokens up to which these settings were chosen."""
FOR_SHORT = frozenset({"gspo(high=0.04,low=0.03)"})
"""Methods whose bounds belong to short responses: those for thousands of tokens are a hundred times smaller."""
ON_POLICY = 1
"""Up to this lag a correction changes little."""
MOST = 4
"""Comparisons in papers that are shown."""
KL_PER_TOKEN = 5e-4
"""K3 between sampler and learner that VCPO's curves show with at most 2,048 tokens (2602.17616)."""
ON_POLICY_KL = 1e-3
"""The most that such curves show, in nats per token."""
KL_PER_RESPONSE = 0.12
"""K3 summed over a response to which `kl-adaptive` was steered at 12, 24 and 48 tokens (study kl-target)."""


@dataclass(frozen=True)
class Choice:
    """One method at the lag, with what survives on each task, and a reason against it."""

    method: str
    tasks: tuple[Tolerated, ...]
    but: str = ""

    @property
    def share(self) -> float:
        """What survives on every task, in (0, 1]: a lag is no reason to raise the rate."""
        return min(1.0, *(one.share for one in self.tasks))


@dataclass(frozen=True)
class Recommendation:
    """What is known for one lag.

    Attributes:
        lag: What was asked, in updates.
        studied_lag: The lag of the phase study that speaks for it: the next one at or above. None: beyond all, or at
            most `ON_POLICY`.
        use: Those that bear most, and are not lost at the next lag of the study, best first.
        aside: Those that bear as much, with what speaks against each.
        avoid: Those that bear next to nothing, worst first.
        earned_lag: The lag of the default run that speaks for it; None: beyond all.
        earned: Rewards there, best first.
        predicted_ess: exp(-2 T KL) at the asked length and `KL_PER_TOKEN`, in (0, 1]; None without a length.
        kl_target: Target of `kl-adaptive` at the asked length, nats per token; None without a length, and where the KL
            that sampler and trainer may have without a lag is above twice the target, which would stop training.
        published: What papers and reports say, one tuple per comparison, the nearest in lag and length first.
    """

    lag: int
    studied_lag: int | None
    use: tuple[Choice, ...]
    aside: tuple[Choice, ...]
    avoid: tuple[Choice, ...]
    earned_lag: int | None
    earned: tuple[Earned, ...]
    predicted_ess: float | None
    kl_target: float | None
    published: tuple[tuple[Published, ...], ...]

    @property
    def keep(self) -> bool:
        """Whether nothing need be changed at this lag."""
        return self.studied_lag is None and self.lag <= ON_POLICY

    @property
    def frozen(self) -> bool:
        """Whether a step steered to the KL of the asked length would stop."""
        return self.predicted_ess is not None and self.kl_target is None


def advise(lag: int, length: int | None = None) -> Recommendation:
    """What the packaged tables say about a lag.

    Args:
        lag: Policy lag in updates, at least 0.
        length: Tokens of a response.
    """
    studied = None if lag <= ON_POLICY else _at_or_above(lag, {row.lag for row in tolerated()})
    choices = sorted(_choices(studied), key=lambda one: -one.share)
    following = _at_or_above(studied + 1, {row.lag for row in tolerated()}) if studied else None
    lost_soon = {one.method for one in _choices(following) if one.share < LOST}
    safe = [one for one in choices if one.method not in lost_soon]
    checked = [replace(one, but=_against(one, length)) for one in safe]
    best = next((one.share for one in checked if not one.but), math.inf)
    most = [one for one in checked if one.share >= CLOSE * best]
    earned_lag = _at_or_above(lag, {row.lag for row in earned()})
    return Recommendation(
        lag,
        studied,
        tuple(one for one in most if not one.but),
        tuple(one for one in most if one.but),
        tuple(one for one in reversed(choices) if one.share < LOST),
        earned_lag,
        tuple(sorted((row for row in earned() if row.lag == earned_lag), key=lambda row: -row.reward)),
        None if length is None else math.exp(-2 * length * KL_PER_TOKEN),
        None if length is None or 2 * KL_PER_RESPONSE / length < ON_POLICY_KL else KL_PER_RESPONSE / length,
        _nearest(lag, length),
    )


def _against(one: Choice, length: int | None) -> str:
    if one.method in FOR_SHORT and (length is None or length > SHORT):
        return "has bounds for 12 to 24 tokens"
    sinks = [row.task for row in one.tasks if row.change < 0]
    return f"ends below its start on {' and '.join(sinks)} at that rate: take half at most" if sinks else ""


def _at_or_above(lag: int, known: Iterable[int]) -> int | None:
    return min((one for one in known if one >= lag), default=None)


def _choices(lag: int | None) -> list[Choice]:
    rows = [row for row in tolerated() if row.lag == lag]
    return [
        Choice(name, tuple(row for row in rows if row.method == name))
        for name in dict.fromkeys(row.method for row in rows)
    ]


def _nearest(lag: int, length: int | None) -> tuple[tuple[Published, ...], ...]:
    def distance(row: Published) -> float:
        tokens = math.log(length / row.tokens) if length and row.tokens else 0.0
        return abs(math.log((1 + lag) / (1 + row.lag))) + 0.1 * abs(tokens)  # the lag decides, the length leans

    found: dict[tuple[str, str, str, int], list[Published]] = {}
    for row in sorted(published(), key=distance):
        found.setdefault((row.paper, row.model, row.task, row.lag), []).append(row)
    return tuple(map(tuple, found.values()))[:MOST]
