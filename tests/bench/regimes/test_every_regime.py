"""What every regime of the catalog promises, whatever its options; and regimes that break a promise are caught."""

from collections.abc import Callable

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from regime_expressions import regimes

from vcpo_bench.bench.regimes import REGIMES, CellShape, Order, Regime, StalenessSchedule, Take
from vcpo_bench.bench.regimes.asynchronous import Async, AsyncSchedule
from vcpo_bench.bench.regimes.checks import check_regime
from vcpo_bench.bench.regimes.fifo import FifoSchedule
from vcpo_bench.bench.regimes.plan import plan
from vcpo_bench.bench.regimes.service_times import ServiceTimes, TwoStations
from vcpo_bench.errors import UsageError

SHAPES = st.builds(
    CellShape,
    seed=st.integers(0, 99),
    prompts=st.integers(1, 5),
    responses=st.integers(1, 3),
    tokens=st.integers(1, 20),
)


@pytest.mark.parametrize("name", REGIMES.names())
@settings(max_examples=60, deadline=None)
@given(data=st.data(), k=st.integers(0, 9), shape=SHAPES)
def test_every_promise_is_kept(name: str, data: st.DataObject, k: int, shape: CellShape) -> None:
    regime = data.draw(regimes(name))
    try:
        regime.schedule(k, shape)
    except UsageError:
        assume(False)
    check_regime(regime, k, shape, updates=3 * k + 6)


@pytest.mark.parametrize("name", REGIMES.names())
def test_at_lag_zero_every_update_trains_on_its_own_policy(name: str) -> None:
    schedule = REGIMES.parse(name).at(0).schedule(0, CellShape(0, 4, 2, 12))
    assert [dict(each.newest) for each in plan(schedule, 5)] == [{update: 8} for update in range(5)]


class Base(Regime):
    """A regime of this file, which is in no catalog."""

    def __init__(self, make: Callable[..., StalenessSchedule]) -> None:
        super().__init__()
        object.__setattr__(self, "make", make)

    def build(self, staleness: int, shape: CellShape) -> StalenessSchedule:
        return self.make(staleness, shape)  # type: ignore[attr-defined, no-any-return]


class Late(FifoSchedule):
    def admit(self, update: int) -> list[Order]:
        first = 0 if update == 0 else update + self.staleness + 1
        return [Order(batch) for batch in range(first, update + self.staleness + 2)]

    @property
    def capacity(self) -> int:
        return self.staleness + 2


class HalfFull(FifoSchedule):
    def select(self, update: int) -> list[Take]:
        return [Take(update, (0,))]


class Empty(FifoSchedule):
    def select(self, update: int) -> list[Take]:
        return []


class Unknown(FifoSchedule):
    def select(self, update: int) -> list[Take]:
        return [Take(update + 99)]


class Hoarder(FifoSchedule):
    def evict(self, update: int) -> list[int]:
        return []


class Hasty(FifoSchedule):
    def evict(self, update: int) -> list[int]:
        return [update + 1]


class Forgetful(FifoSchedule):
    def evict(self, update: int) -> list[int]:
        return [update, update]


class Unfinished(FifoSchedule):
    def admit(self, update: int) -> list[Order]:
        return [order._replace(stop=3) for order in super().admit(update)]


class Repeated(FifoSchedule):
    def admit(self, update: int) -> list[Order]:
        return [*super().admit(update), Order(update)]


class Middle(FifoSchedule):
    def admit(self, update: int) -> list[Order]:
        return [order._replace(start=3) for order in super().admit(update)]


class Again(FifoSchedule):
    def admit(self, update: int) -> list[Order]:
        return super().admit(update) + ([Order(update - 1)] if update else [])


class Counting(FifoSchedule):
    asked = 0

    def select(self, update: int) -> list[Take]:
        self.asked += 1
        return [Take(update)] if self.asked < 9 else [Take(update, (0, 1, 2, 3))]


class Stingy(FifoSchedule):
    def updates(self, steps: int) -> int:
        return steps - 1


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (Late, "has lag 3, above the bound 2"),
        (HalfFull, "update 0 is not full: 2 of 8"),
        (Empty, "update 0 is not full: 0 of 8"),
        (Unknown, r"consumes batches \[99\], which are not held"),
        (Hoarder, "batches are held, above the capacity"),
        (Hasty, r"update 1 consumes batches \[1\]"),
        (Forgetful, "evicts batch 0, which is not held"),
        (Unfinished, "tokens that were not sampled"),
        (Repeated, "tokens are sampled twice"),
        (Middle, "has not begun"),
        (Again, "update 1 admits batch 0, which was evicted"),
        (Counting, "the answers depend on what was asked before"),
        (Stingy, "only 39 updates of a budget of 40"),
        (AsyncSchedule, "must be a planned one"),
    ],
)
def test_a_broken_promise_is_named(make: Callable[..., StalenessSchedule], said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        check_regime(Base(make), 2)


class Deaf(AsyncSchedule):
    """Forgets what was queued when it is saved."""

    def state(self) -> dict[str, object]:
        return super().state() | {"ready": []}


class Lossy(AsyncSchedule):
    """Skips a ticket when it is saved."""

    def state(self) -> dict[str, object]:
        return super().state() | {"next_ticket": self.next_ticket + 1}


class Greedy(AsyncSchedule):
    def may_start(self, update: int) -> int:
        return super().may_start(update) + 4


class Blind(AsyncSchedule):
    """Consumes a queue in any order and drops nothing."""

    def __init__(self, staleness: int, shape: CellShape) -> None:
        super().__init__(staleness, shape, drop=True)

    def evict(self, update: int) -> list[int]:
        return []

    abort = evict

    def select(self, update: int) -> list[Take]:
        chosen = sorted(self.ready)[-4:]
        for ticket in chosen if len(chosen) == 4 else []:
            del self.ready[ticket]
        self.trained += len(chosen) // 4 * 4
        return [Take(ticket // 4, (ticket % 4,)) for ticket in chosen] if len(chosen) == 4 else []


class Eventful(Base):
    """The same with service times."""

    @property
    def service(self) -> TwoStations:
        return TwoStations(ServiceTimes(1.0, 3.0, straggler=0.2, slowdown=20.0))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (Deaf, "waits for groups, and none is in flight"),
        (Lossy, "neither trained, queued, running nor dropped"),
        (Greedy, "older than the bound|above the capacity"),
        (Blind, "above the bound"),
        (FifoSchedule, "must build an AsyncSchedule"),
    ],
)
def test_a_broken_promise_of_an_asynchronous_regime_is_named(make: Callable[..., StalenessSchedule], said: str) -> None:
    check_regime(Async(clock="virtual", learner=3.0, straggler=0.2, slowdown=20.0), 2)
    with pytest.raises(AssertionError, match=said):
        check_regime(Eventful(make), 2)
