"""A planned schedule run without sampling or training: which update consumes which version of the weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.bench.regimes.base import Order, StalenessSchedule


@dataclass(frozen=True, slots=True)
class PlannedUpdate:
    """What one update will consume.

    Attributes:
        update: Its number t.
        oldest: Trajectories by version of their first token.
        newest: Trajectories by version of their last token, if they reach full length.
        held: Batches held while it runs, queued or in flight.
        filling: Whether the pipeline is still filling.
    """

    update: int
    oldest: Counter[int]
    newest: Counter[int]
    held: int
    filling: bool

    @property
    def lags(self) -> Counter[int]:
        """Trajectories by lag of their first token."""
        return Counter({self.update - version: count for version, count in self.oldest.items()})


Versions = NDArray[np.int64]
"""`[P, G, 2]` version of the first and of the last token of each trajectory; -1 before it is sampled."""


def plan(schedule: StalenessSchedule, updates: int) -> Iterator[PlannedUpdate]:
    """Run a planned schedule without sampling or training.

    Raises:
        BrokenPromiseError: The schedule breaks a promise: a token is sampled twice or never, an update is not full, its
            lag is above the bound, a batch is used that was not admitted or was evicted, or too many are held.
    """
    held: dict[int, Versions] = {}
    evicted: set[int] = set()
    for update in range(updates):
        _sample(schedule, update, held, evicted)
        count = len(held)
        promise(count <= schedule.capacity, f"update {update}: {count} batches are held, above the capacity")
        versions = _consumed(schedule, update, held)
        yield PlannedUpdate(
            update,
            Counter(versions[:, 0].tolist()),
            Counter(versions[:, 1].tolist()),
            count,
            schedule.filling(update),
        )
        for batch in schedule.evict(update):
            promise(batch in held, f"update {update} evicts batch {batch}, which is not held")
            del held[batch]
            evicted.add(batch)


class BrokenPromiseError(AssertionError):
    """A schedule does not do what every schedule promises."""


def promise(kept: bool, text: str) -> None:
    """Raise what breaks a promise of a schedule.

    Raises:
        BrokenPromiseError: The promise is not kept.
    """
    if not kept:
        raise BrokenPromiseError(text)


def _sample(schedule: StalenessSchedule, update: int, held: dict[int, Versions], evicted: set[int]) -> None:
    """Carry out the orders before an update."""
    orders = schedule.admit(update)
    promise(isinstance(orders, Iterable), f"update {update}: admit returned {type(orders).__name__}, not orders")
    for order in orders:
        if order.start == 0 and order.batch not in held:
            promise(order.batch not in evicted, f"update {update} admits batch {order.batch}, which was evicted")
            shape = (schedule.groups(order.batch), schedule.shape.responses, 2)
            held[order.batch] = np.full(shape, -1, dtype=np.int64)
        promise(order.batch in held, f"update {update} goes on with batch {order.batch}, which has not begun")
        _stamp(held[order.batch], order, schedule.version(update))


def _consumed(schedule: StalenessSchedule, update: int, held: dict[int, Versions]) -> NDArray[np.int64]:
    """`[P G, 2]` versions of what an update consumes."""
    takes = schedule.select(update)
    missing = [take.batch for take in takes if take.batch not in held]
    promise(not missing, f"update {update} consumes batches {missing}, which are not held")
    parts = [held[take.batch][_index(take.groups)].reshape(-1, 2) for take in takes]
    versions = np.concatenate([np.empty((0, 2), dtype=np.int64), *parts])
    full = schedule.shape.prompts * schedule.shape.responses
    promise(len(versions) == full, f"update {update} is not full: {len(versions)} of {full} trajectories")
    promise(bool(versions.min() >= 0), f"update {update} consumes tokens that were not sampled")
    bound, lag = schedule.staleness + schedule.publish_every - 1, update - int(versions.min())
    promise(lag <= bound, f"update {update} has lag {lag}, above the bound {bound}")
    return versions


def _index(groups: tuple[int, ...] | None) -> slice | list[int]:
    return slice(None) if groups is None else list(groups)


def _stamp(versions: Versions, order: Order, version: int) -> None:
    """Write the version of the weights into the ends of trajectories that an order draws."""
    rows = slice(None) if order.rows is None else list(order.rows)
    flat = versions.reshape(-1, 2)
    chosen = flat[rows]
    ends = [0] * (order.start == 0) + [1] * (order.stop is None)
    for end in ends:
        promise(bool((chosen[:, end] == -1).all()), f"batch {order.batch}: tokens are sampled twice")
        chosen[:, end] = version
    flat[rows] = chosen


def summary(planned: list[PlannedUpdate]) -> dict[str, float]:
    """Largest lag, mean lag and period, in updates, of a plan after the fill; of all of it where it only fills.

    The period is the smallest shift under which the lags repeat, and 0 when they do not repeat within the plan. With a
    period, the other numbers are those of one period.
    """
    steady = [each for each in planned if not each.filling] or planned
    period = _period([each.lags for each in steady])
    steady = steady[:period] if period else steady
    lags: Counter[int] = sum((each.lags for each in steady), Counter())
    total = lags.total()
    return {
        "max": max(lags),
        "mean": sum(lag * count for lag, count in lags.items()) / total,
        "period": period,
    }


def _period(lags: list[Counter[int]]) -> int:
    for shift in range(1, len(lags) // 2 + 1):
        if lags[shift:] == lags[:-shift]:
            return shift
    return 0


def draw(planned: list[PlannedUpdate]) -> str:
    """One line per update, one column per lag. `#`: all trajectories, a digit: tenths of them, `.`: less than that."""
    deepest = max(max(each.lags) for each in planned)
    cell = max(1, -(-(deepest + 1) // 80))  # lags per column, so that a line fits a terminal
    lines = [f"update  version  lag 0..{deepest}" + (f", {cell} per column" if cell > 1 else "")]
    for each in planned:
        columns = [0] * (deepest // cell + 1)
        for lag, count in each.lags.items():
            columns[lag // cell] += count
        total = each.oldest.total()
        first, last = min(each.oldest), max(each.newest)
        span = str(first) if first == last else f"{first}..{last}"
        bar = "".join(_mark(count, total) for count in columns).rstrip()
        lines.append(f"{each.update:6}  {span:>7}  {bar}{'  (filling)' if each.filling else ''}")
    return "\n".join(lines)


def _mark(count: int, total: int) -> str:
    if count == 0:
        return " "
    return "#" if count == total else str(10 * count // total) if 10 * count >= total else "."
