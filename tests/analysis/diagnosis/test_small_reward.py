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
    values = np.clip(rewards + np.random.default_rng(seed).normal(0, noise, rewards.size), 0, 1)
    series = Series(columns()["eval_reward"], Name("a", "eval_reward", "exact"), ("a",), 10.0 * T, values)
    return read_outcome(LoggedRun("log", framework, "", "updates", "step", {"eval_reward": series}))


@pytest.mark.parametrize("left", [0.0, 0.01, 0.02])
def test_a_fall_to_nothing_from_less_than_a_tenth_is_a_collapse(left: float) -> None:
    outcome = judged(np.maximum(FALL, left))
    assert (outcome.verdict, outcome.onset) == ("collapsed", 140)


def test_of_little_a_half_is_not_enough_to_lose() -> None:
    assert judged(np.where(T < 14, 0.09, 0.035)).verdict == "declining"


@pytest.mark.parametrize("seed", range(5))
def test_a_small_reward_that_is_noisy_does_not_fall(seed: int) -> None:
    assert judged(np.full(20, 0.04), noise=0.015, seed=seed).verdict != "collapsed"


def test_a_reward_that_triples_rises() -> None:
    assert judged(RISE).verdict == "healthy"


@pytest.mark.parametrize(("rewards", "noise"), [(RISE, 0.03), (0.5 + RISE, 0.003), (np.full(20, 0.08), 0.003)])
def test_a_rise_within_its_noise_or_by_little_is_a_stall(rewards: np.ndarray, noise: float) -> None:
    assert judged(rewards, noise=noise, seed=1).verdict == "stall"


def test_the_recorded_rule_judges_our_own_runs() -> None:
    assert judged(FALL, "vcpo-bench").verdict == "declining"
    assert judged(RISE, "vcpo-bench").verdict == "stall"
