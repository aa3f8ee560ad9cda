"""How old the routes are that a mixture of experts replays, without a run."""

import pytest

from vcpo_bench.bench.regimes.routes import describe_routes, routes_by_lag
from vcpo_bench.bench.regimes.simulation import planned_updates
from vcpo_bench.errors import UsageError

FULL = 16 * 8


@pytest.mark.parametrize("replay", ["r2", "r3"])
def test_in_a_queue_both_are_as_old_as_the_samples(replay: str) -> None:
    found = routes_by_lag(replay, "fifo", 4, 8, 0)
    assert [dict(ages) for ages in found] == [{min(update, 4): FULL} for update in range(8)]


def test_without_replay_the_learner_chooses_now() -> None:
    assert routes_by_lag("off", "fifo", 4, 3, 0) == [{0: FULL}] * 3


def test_in_flight_the_learner_chooses_when_the_last_token_is_drawn() -> None:
    """The sampler chose for the first tokens long before."""
    assert dict(routes_by_lag("r3", "inflight", 4, 12, 0)[-1]) == {4: FULL}
    last = planned_updates("inflight", 4, 12, 0)[-1]
    newest = {last.update - version: count for version, count in last.newest.items()}
    assert dict(routes_by_lag("r2", "inflight", 4, 12, 0)[-1]) == newest
    assert max(newest) < 4


def test_weights_that_are_published_late_are_older_than_the_learners() -> None:
    sampler, learner = (routes_by_lag(replay, "fifo(publish_every=4)", 4, 16, 0) for replay in ("r3", "r2"))
    assert max(sampler[-1]) > max(learner[-1])


def test_each_reuse_of_a_batch_finds_its_routes_older() -> None:
    ages = [max(one) for one in routes_by_lag("r2", "minibatch", 3, 8, 0)]
    assert ages == [0, 1, 2, 3] * 2


def test_a_line_says_it_and_what_is_not_planned_is_refused() -> None:
    assert describe_routes("r3", "fifo", 4, 9, 0).endswith("4 to 4 updates old, mean 4")
    virtual = "async(clock=virtual,sampler=1,learner=1)"
    assert max(routes_by_lag("r3", virtual, 2, 6, 0)[-1]) <= 2
    with pytest.raises(UsageError, match="known only in a run"):
        routes_by_lag("r2", virtual, 2, 6, 0)
