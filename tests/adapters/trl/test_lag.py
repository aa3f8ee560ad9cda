"""The queue and the prompts of an exact lag, without TRL."""

import itertools

import pytest

from vcpo_bench.adapters.trl.lag import LagQueue, PromptStream, read_lag
from vcpo_bench.errors import UsageError


def test_lag_is_read() -> None:
    assert read_lag("fifo(0)") == 0
    assert read_lag("fifo(32)") == 32
    assert read_lag("fifo(k=2)") == 2


@pytest.mark.parametrize("text", ["fifo", "fifo()", "fifo(-1)", "fifo(1,2)", "fifo(1.5)", "reuse(4)", "8", "fifo(x=2)"])
def test_another_lag_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"write fifo\(k\)|lag: "):
        read_lag(text)


@pytest.mark.parametrize("lag", [0, 1, 5])
def test_an_update_gets_what_was_sampled_lag_updates_ago(lag: int) -> None:
    batches, now = itertools.count(), 0
    queue = LagQueue(lag, lambda: {"version": now, "batch": next(batches)})
    for update in range(12):
        now = update
        assert queue.next() == {"version": max(update - lag, 0), "batch": update}
        assert len(queue.waiting) == lag


class TwoEpochs:
    """Another order in every epoch; every batch twice, as a trainer that trains twice on it has it."""

    def __init__(self) -> None:
        self.epoch = 0

    def __iter__(self) -> "itertools.chain[int]":
        self.epoch += 1
        order = list(range(8)) if self.epoch == 1 else list(range(7, -1, -1))
        return itertools.chain(*([*order[start : start + 4]] * 2 for start in (0, 4)))


def stream(rank: int) -> PromptStream:
    return PromptStream([f"p{i}" for i in range(8)], TwoEpochs(), rows=2, rank=rank, ranks=2, repeats=2)


def test_ranks_share_every_batch_in_the_order_of_the_sampler() -> None:
    first, second = stream(0), stream(1)
    assert [first.draw() + second.draw() for _ in range(4)] == [
        ["p0", "p1", "p2", "p3"],
        ["p4", "p5", "p6", "p7"],
        ["p7", "p6", "p5", "p4"],
        ["p3", "p2", "p1", "p0"],
    ]


def test_skipping_goes_on_where_another_stopped() -> None:
    drawn, skipped = stream(1), stream(1)
    for _ in range(3):
        drawn.draw()
    skipped.skip(3)
    assert skipped.drawn == drawn.drawn == 3
    assert skipped.draw() == drawn.draw()


def test_too_few_prompts_are_said() -> None:
    small = PromptStream(["a"], [0, 0], rows=4, rank=0, ranks=1, repeats=1)
    with pytest.raises(UsageError, match="too few prompts for one generation batch of 4 rows"):
        small.draw()
