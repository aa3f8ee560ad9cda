"""Which weights the routes come from that a mixture of experts replays, for `vcpo-bench lab plan`."""

from __future__ import annotations

from collections import Counter

from vcpo_bench.bench.regimes.base import CellShape, StalenessSchedule
from vcpo_bench.bench.regimes.regime import REGIMES
from vcpo_bench.bench.regimes.simulation import PROMPTS, RESPONSES, TOKENS, planned_updates
from vcpo_bench.errors import UsageError


def routes_by_lag(replay: str, regime: str, staleness: int, updates: int, seed: int) -> list[Counter[int]]:
    """For every update the trajectories by the age, in updates, of the weights that chose their routes.

    Args:
        replay: `off`: the learner chooses now; `r2`: the learner when the batch had just been sampled; `r3`: the
            sampler, of which the age at the first token is counted.
        regime: Regime expression.
        staleness: Lag, in updates.
        updates: How many.
        seed: For random lags and shuffles.

    Raises:
        UsageError: As `planned_updates`; or the regime decides while it runs when a batch is complete.
    """
    planned = planned_updates(regime, staleness, updates, seed)
    if replay == "r3":
        return [each.lags for each in planned]
    if replay == "off":
        return [Counter({0: each.oldest.total()}) for each in planned]
    parsed = REGIMES.parse(regime)
    if parsed.asynchronous:
        raise UsageError(f"--replay r2 --regime {regime}: when a batch is complete is known only in a run; use r3")
    schedule = parsed.schedule(staleness, CellShape(seed, PROMPTS, RESPONSES, TOKENS))
    return _since_complete(schedule, len(planned))


def describe_routes(replay: str, regime: str, staleness: int, updates: int, seed: int) -> str:
    """One line on the routes of the last update of a plan."""
    last = routes_by_lag(replay, regime, staleness, updates, seed)[-1]
    mean = sum(lag * count for lag, count in last.items()) / last.total()
    by = {"off": "the learner now", "r2": "the learner when the batch had just been sampled", "r3": "the sampler"}
    ages = f"{min(last)} to {max(last)} updates old, mean {mean:.3g}"
    return f"routes ({replay}) chosen by {by[replay]}: at the last update drawn, {ages}"


def _since_complete(schedule: StalenessSchedule, updates: int) -> list[Counter[int]]:
    """Trajectories by updates since the last token of their batch was drawn."""
    complete: dict[int, int] = {}
    found = []
    for update in range(updates):
        complete |= {order.batch: update for order in schedule.admit(update)}
        ages = Counter[int]()
        for take in schedule.select(update):
            groups = schedule.groups(take.batch) if take.groups is None else len(take.groups)
            ages[update - complete[take.batch]] += groups * schedule.shape.responses
        found.append(ages)
    return found
