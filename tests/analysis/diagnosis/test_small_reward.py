"""Rewards of a hard task are judged by what they can lose and gain, in logs that people bring."""

import numpy as np
import pytest

from vcpo_bench.analysis.diagnosis.diagnosis import Outcome
from vcpo_bench.analysis.diagnosis.outcome import read_outcome
from vcpo_bench.analysis.logs.names import Name, columns
from vcpo_bench.analysis.logs.run import LoggedRun, Series

T = np.arange(20)
FALL = np.where(T < 14, 0.02 + 0.07 * np.minimum(T / 8, 1), 0.0)
RISE = 0.02 + 0.04 * T / 19


def judged(rewards: np.ndarray, framework: str = "verl", noise: float = 0.003, seed: int = 0) -> Outcome:
    return read(np.clip(rewards + np.random.default_rng(seed).normal(0, noise, rewards.size), 0, 1), framework)


def read(values: np.ndarray, framework: str = "verl") -> Outcome:
    series = Series(columns()["eval_reward"], Name("a", "eval_reward", "exact"), ("a",), 10.0 * T, values)
    return read_outcome(LoggedRun("log", framework, "", "updates", "step", {"eval_reward": series}))


@pytest.mark.parametrize("left", [0.0, 0.01])
def test_a_fall_to_nothing_from_less_than_a_tenth_is_a_collapse(left: float) -> None:
    outcome = judged(np.maximum(FALL, left))
    assert (outcome.verdict, outcome.onset) == ("collapsed", 140)


@pytest.mark.parametrize("left", [0.02, 0.035])
def test_of_little_most_must_be_lost(left: float) -> None:
    assert judged(np.where(T < 14, 0.09, left)).verdict == "declining"


def test_four_points_near_nothing_are_too_few() -> None:
    assert judged(np.where(T < 16, 0.09, 0.0)).verdict != "collapsed"


@pytest.mark.parametrize("mean", [0.04, 0.06, -0.1])
def test_a_small_reward_that_wanders_does_not_fall(mean: float) -> None:
    """Noise that lasts: by the next point a tenth of the distance from the mean is gone. Negative ones are shifted."""
    verdicts = []
    for seed in range(50):
        random, wander = np.random.default_rng(seed), np.zeros(20)
        for t in range(1, 20):
            wander[t] = 0.9 * wander[t - 1] + random.normal(0, 0.0044)  # 0.01 in the long run
        verdicts.append(read(mean + wander).verdict)
    assert "collapsed" not in verdicts


def test_one_good_evaluation_at_the_start_is_nothing_to_lose() -> None:
    assert judged(np.where(T < 1, 0.09, 0.03)).verdict == "stall"


def test_a_reward_that_triples_rises() -> None:
    assert judged(RISE).verdict == "healthy"


@pytest.mark.parametrize(("rewards", "noise"), [(RISE, 0.03), (0.5 + RISE, 0.003), (np.full(20, 0.08), 0.003)])
def test_a_rise_within_its_noise_or_by_little_is_a_stall(rewards: np.ndarray, noise: float) -> None:
    assert judged(rewards, noise=noise, seed=1).verdict == "stall"


def test_the_recorded_rule_judges_our_own_runs() -> None:
    assert judged(FALL, "vcpo-bench").verdict == "declining"
    assert judged(RISE, "vcpo-bench").verdict == "stall"
