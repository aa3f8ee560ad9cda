"""Falls within the noise of few samples are none, falls beyond it are told early."""

import numpy as np
import pytest

from vcpo_bench.analysis.diagnosis.outcome import read_outcome
from vcpo_bench.analysis.diagnosis.small_batch import samples_per_value
from vcpo_bench.analysis.logs.names import Name, columns
from vcpo_bench.analysis.logs.run import LoggedRun, Series

T = np.arange(120)


def run(every: int = 1, **values: np.ndarray) -> LoggedRun:
    series = {
        name: Series(columns()[name], Name(name, name, "exact"), (name,), every * (T[: one.size] + 1.0), one)
        for name, one in values.items()
    }
    return LoggedRun("train.log", "trl", "TRL", "optimizer updates", "step", series)


def draws(share: np.ndarray, samples: int, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).binomial(samples, share) / samples


@pytest.mark.parametrize(("samples", "scale"), [(6, 3.0), (8, 1.0), (30, 1.0), (80, 10.0)])
def test_the_samples_behind_a_value_are_read_from_its_steps(samples: int, scale: float) -> None:
    values = scale * draws(np.linspace(0.1, 0.95, T.size), samples)
    values[-1] = scale
    assert samples_per_value(run(reward=values).series["reward"]) == samples


def test_large_batches_have_no_steps() -> None:
    assert samples_per_value(run(reward=draws(np.full(120, 0.5), 512)).series["reward"]) is None


def test_evaluations_on_thirty_prompts_do_not_fall_within_their_noise() -> None:
    scores = np.array([3, 6, 5, 7, 4, 6, 3, 2, 3, 2, 3]) / 30
    outcome = read_outcome(run(every=20, eval_reward=scores))
    assert outcome.verdict == "cannot tell"
    assert "mean of 30 samples" in outcome.reason


def test_evaluations_on_thirty_prompts_can_fall() -> None:
    assert read_outcome(run(eval_reward=np.array([12, 15, 18, 20, 19, 4, 2, 1, 2, 1, 0]) / 30)).verdict == "collapsed"


def test_a_hump_in_rows_of_several_small_batches_is_none() -> None:
    share = np.where((T > 40) & (T < 60), 0.8, 0.4)
    assert read_outcome(run(every=5, reward=draws(share, 40))).verdict == "cannot tell"


@pytest.mark.parametrize(("scale", "least"), [(1.0, 0.0), (100.0, 0.0), (2.0, -1.0)])
def test_a_reward_that_is_gone_is_told_before_three_points_are_low(scale: float, least: float) -> None:
    share = np.where(T[:60] < 52, 0.6, 0.05)
    outcome = read_outcome(run(reward=scale * draws(share, 256) + least))
    assert outcome.verdict == "collapsed"
    assert 51 <= outcome.onset <= 53


def test_a_reward_that_is_often_low_is_not_gone() -> None:
    values = draws(np.full(60, 0.3), 4)
    values[-3:] = 0
    assert read_outcome(run(reward=values)).verdict != "collapsed"


def test_small_negative_rewards_that_are_most_of_a_run_are_no_penalties() -> None:
    assert read_outcome(run(reward=np.linspace(-0.4, -0.02, 120))).verdict == "healthy"


def test_a_noisy_curve_that_begins_near_its_least_has_no_dips() -> None:
    noise = np.random.default_rng(5).normal(0, 0.06, T.size)
    assert read_outcome(run(every=10, reward=np.linspace(-0.15, 0.3, T.size) + noise)).verdict == "healthy"


def test_a_curve_without_noise_can_dip() -> None:
    reward = np.where((T > 60) & (T < 75), 0.1, 0.6) + np.linspace(0, 0.1, T.size)
    assert read_outcome(run(reward=reward)).verdict == "dip"
