import pytest

from vcpo_bench.bench.schedule import Fifo


@pytest.mark.parametrize("k", [0, 1, 5, 64])
def test_every_batch_is_sampled_once_and_consumed_at_its_lag(k: int) -> None:
    schedule = Fifo(k)
    version: dict[int, int] = {}
    for update in range(100):
        for index in schedule.sampled_before(update):
            assert index not in version
            version[index] = update
        assert update - version.pop(schedule.consumed_by(update)) == schedule.lag(update) == min(update, k)
        assert len(version) == k
