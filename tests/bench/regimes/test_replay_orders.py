"""Which recent groups are reused: the fresher the likelier, or the oldest first."""

from collections import Counter

import numpy as np
import pytest

from vcpo_bench.bench.regimes import REGIMES, CellShape
from vcpo_bench.errors import UsageError

SHAPE = CellShape(seed=3, prompts=8, responses=2, tokens=6)


def reused_lags(regime: str, staleness: int, updates: int) -> Counter[int]:
    """Reused groups by lag, once the buffer is full."""
    schedule = REGIMES.parse(regime).schedule(staleness, SHAPE)
    found: Counter[int] = Counter()
    for update in range(staleness, staleness + updates):
        takes = [take for take in schedule.select(update) if take.batch != update]
        found.update(update - take.batch for take in takes for _ in take.groups or ())
    return found


def test_the_chance_of_reuse_falls_by_e_per_tau() -> None:
    """One group of four is reused, out of seven from each of four updates."""
    found = reused_lags("fresh-replay(fraction=0.125,tau=2)", 4, 4000)
    expected = np.exp(-np.arange(1, 5) / 2)
    expected /= expected.sum()
    shares = np.array([found[lag] for lag in range(1, 5)]) / found.total()
    assert np.abs(shares - expected).max() < 3.5 * np.sqrt(0.25 / 4000)


def test_a_long_tau_is_the_uniform_replay_in_distribution() -> None:
    found = reused_lags("fresh-replay(fraction=0.125,tau=1e9)", 4, 4000)
    assert max(abs(found[lag] / found.total() - 0.25) for lag in range(1, 5)) < 3.5 * np.sqrt(0.25 * 0.75 / 4000)


def test_no_group_is_reused_twice_by_one_update() -> None:
    schedule = REGIMES.parse("fresh-replay(tau=0.1)").schedule(6, SHAPE)
    for update in range(6, 60):
        takes = [(take.batch, take.groups) for take in schedule.select(update)]
        assert len(takes) == len(set(takes))


@pytest.mark.parametrize("staleness", [1, 3, 8])
def test_oldest_first_reuses_at_lag_k_and_every_group_once(staleness: int) -> None:
    found = reused_lags("oldest-first", staleness, 40)
    assert set(found) == {staleness}
    schedule = REGIMES.parse("oldest-first").schedule(staleness, SHAPE)
    late = Counter(
        (take.batch, group)
        for update in range(staleness + 1, staleness + 41)
        for take in schedule.select(update)
        if take.batch != update
        for group in take.groups or ()
    )
    assert set(late.values()) == {1}
    assert len(late) == 40 * 4


@pytest.mark.parametrize(("regime", "prompts"), [("replay(fraction=0.05)", 8), ("oldest-first", 1)])
def test_a_lag_that_no_group_would_have_is_refused(regime: str, prompts: int) -> None:
    shape = SHAPE._replace(prompts=prompts)
    with pytest.raises(UsageError, match=rf"--prompts {prompts}: .* every lag would be 0"):
        REGIMES.parse(regime).schedule(4, shape)
    assert REGIMES.parse(regime).schedule(0, shape).staleness == 0  # synchronous, as asked
