"""A schedule run on paper: which update consumes which version, for checks, golden files and people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.bench.regimes.base import Order, StalenessSchedule


@dataclass(frozen=True, slots=True)
class PlannedUpdate:
    """What one update is to consume.

    Attributes:
        update: Its number t.
        oldest: Trajectories by version of their first token.
        newest: Trajectories by version of their last token, should they run to full length.
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
    """Run a deterministic schedule on paper.

    Raises:
        AssertionError: The schedule contradicts itself: a token sampled twice or never, or an update that is not full.
    """
    shape = schedule.shape
    held: dict[int, Versions] = {}
    for update in range(updates):
        for order in schedule.admit(update):
            if order.start == 0 and order.batch not in held:
                held[order.batch] = np.full((schedule.groups(order.batch), shape.responses, 2), -1, dtype=np.int64)
            _sample(held[order.batch], order, schedule.version(update))
        count = len(held)
        takes = [held[take.batch][_index(take.groups)] for take in schedule.select(update)]
        versions = np.concatenate(takes).reshape(-1, 2)
        assert len(versions) == shape.prompts * shape.responses, f"update {update} is not full"
        assert versions.min() >= 0, f"update {update} consumes tokens that were not sampled"
        yield PlannedUpdate(
            update,
            Counter(versions[:, 0].tolist()),
            Counter(versions[:, 1].tolist()),
            count,
            schedule.filling(update),
        )
        for batch in schedule.evict(update):
            del held[batch]


def _index(groups: tuple[int, ...] | None) -> slice | list[int]:
    return slice(None) if groups is None else list(groups)


def _sample(versions: Versions, order: Order, version: int) -> None:
    rows = slice(None) if order.rows is None else list(order.rows)
    flat = versions.reshape(-1, 2)
    chosen = flat[rows]
    ends = [0] * (order.start == 0) + [1] * (order.stop is None)
    for end in ends:
        assert (chosen[:, end] == -1).all(), f"batch {order.batch}: tokens sampled twice"
        chosen[:, end] = version
    flat[rows] = chosen


def summary(planned: list[PlannedUpdate]) -> dict[str, float]:
    """Largest and mean lag, and the period in updates, of the part of a plan after the fill (of all where none).

    The period is the smallest shift under which the lags repeat; 0 when they do not within the plan. The numbers are
    those of one period where there is one.
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
    """A line per update and a column per lag; digits are tenths of the trajectories (`#`: all), `.` some."""
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
