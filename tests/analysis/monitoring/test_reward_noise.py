"""A reward that only fluctuates is no falling reward, however few trajectories a batch has."""

import numpy as np
import pytest

from vcpo_bench.analysis.monitoring.alarm_panel import AlarmPanel
from vcpo_bench.analysis.monitoring.calibration import load_calibrations
from vcpo_bench.analysis.monitoring.reward_noise import beyond_chance
from vcpo_bench.analysis.monitoring.signal import all_signals

DROP = all_signals()["reward_drop"]
(PACKAGED,) = (one for one in load_calibrations() if one.detector.signal == "reward_drop")
RUNS = 100


def flat(updates: int, groups: int = 8, responses: int = 8) -> np.ndarray:
    """Mean rewards [RUNS, updates] of runs that learn nothing, on prompts that are easy or hard."""
    generator = np.random.default_rng(0)
    solved = generator.beta(1, 1, (RUNS, updates, groups))
    return generator.binomial(responses, solved).mean(-1) / responses


def first_alarm(rewards: np.ndarray) -> int | None:
    """The update at which the packaged detector speaks first."""
    values = beyond_chance(DROP, DROP.of({"sampled_reward": rewards}), rewards, PACKAGED.detector.threshold)
    alarms = np.flatnonzero(PACKAGED.detector.alarms(values))
    return int(alarms[0]) if alarms.size else None


@pytest.mark.parametrize("updates", [60, 400, 2000])
def test_noise_alone_is_heard_in_fewer_than_one_run_of_twenty(updates: int) -> None:
    rewards = flat(updates)
    unaided = [PACKAGED.detector.alarms(DROP.of({"sampled_reward": one})).any() for one in rewards]
    assert np.mean(unaided) > 0.5
    assert np.mean([first_alarm(one) is not None for one in rewards]) < 0.05


def test_a_fall_is_heard_before_half_of_it_happened() -> None:
    falling = np.interp(np.arange(400), [0, 200, 260], [0, 0, -0.5]) + flat(400)
    found = [first_alarm(np.maximum(one, 0)) for one in falling]
    assert np.mean([at is not None and 200 < at < 260 for at in found]) > 0.8


def test_a_rising_reward_is_not_taken_for_noise() -> None:
    rewards = np.concatenate([np.linspace(0, 0.9, 100), np.linspace(0.9, 0.7, 40)])
    unaided = PACKAGED.detector.alarms(DROP.of({"sampled_reward": rewards}))
    assert first_alarm(rewards) == int(np.flatnonzero(unaided)[0])


def test_rewards_that_are_missing_change_nothing() -> None:
    falling = np.concatenate([np.full(40, 0.8), np.full(20, 0.2)])
    holes = np.insert(falling, [0, 10, 50], np.nan)
    at = first_alarm(falling)
    assert at is not None
    assert first_alarm(holes) == at + 2


def test_the_panel_hears_what_a_log_says() -> None:
    for one in flat(100)[:5] - np.where(np.arange(100) < 70, 0, 0.4):
        panel = AlarmPanel([PACKAGED])
        spoken = [at for at, reward in enumerate(np.maximum(one, 0)) if panel.feed({"sampled_reward": reward})]
        assert (spoken or [None])[0] == first_alarm(np.maximum(one, 0))
