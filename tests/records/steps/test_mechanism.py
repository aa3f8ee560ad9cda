"""Surprisal of what is pushed down, and what answers owe to the prompt: by hand and against planted laws."""

import math
from typing import Any

import numpy as np
import pytest

from vcpo_bench.records.step_facts import StepFacts
from vcpo_bench.records.steps import DIAGNOSTICS


def facts(**given: Any) -> StepFacts:
    mask = given.pop("mask")
    return StepFacts(0, np.zeros(mask.shape), mask, np.zeros(mask.shape, dtype=np.int64), np.zeros(mask.shape), **given)


def test_surprisal_of_responses_below_their_groups_mean() -> None:
    logp = -np.arange(8.0).reshape(4, 2)
    mask = np.array([[True, True], [True, False], [True, True], [True, True]])
    reward = np.array([[1.0, 0.0], [0.5, 0.5]])
    found = DIAGNOSTICS["negative_surprisal"].compute(facts(mask=mask, logp=logp, reward=reward))
    assert found == 2.0, "one response, one token that counts; the second group has no response below its mean"
    none = DIAGNOSTICS["negative_surprisal"].compute(facts(mask=mask, logp=logp, reward=np.ones((2, 2))))
    assert none is None


def test_rounding_makes_no_negative() -> None:
    reward = np.full((1, 3), 0.1)
    assert (reward < reward.mean()).all(), "the mean of three tenths is more than a tenth"
    shape = np.ones((3, 1), dtype=bool)
    assert DIAGNOSTICS["negative_surprisal"].compute(facts(mask=shape, logp=np.zeros((3, 1)), reward=reward)) is None


def draw(depends: bool) -> StepFacts:
    rng = np.random.default_rng(0)
    tokens = rng.integers(0, 4, size=(16, 64, 6))
    if depends:
        tokens = np.broadcast_to((np.arange(16) % 4)[:, None, None], tokens.shape)
    mask = rng.random((16 * 64, 6)) < 0.8
    return facts(mask=mask, tokens_drawn=tokens.reshape(-1, 6), reward=np.zeros((16, 64)))


def test_answers_that_ignore_the_prompt_carry_no_information() -> None:
    assert DIAGNOSTICS["prompt_information"].compute(draw(depends=False)) == pytest.approx(0.0, abs=2e-3)


def test_answers_that_the_prompt_decides_carry_all_of_it() -> None:
    assert DIAGNOSTICS["prompt_information"].compute(draw(depends=True)) == pytest.approx(math.log(4), abs=3e-3)


@pytest.mark.parametrize("shape", [(1, 4), (4, 1)])
def test_one_prompt_or_one_response_tells_nothing(shape: tuple[int, int]) -> None:
    mask = np.ones((4, 2), dtype=bool)
    found = DIAGNOSTICS["prompt_information"].compute(
        facts(mask=mask, tokens_drawn=np.zeros((4, 2), np.int64), reward=np.zeros(shape))
    )
    assert found is None


def test_logs_that_keep_no_tokens_have_neither() -> None:
    mask = np.ones((4, 2), dtype=bool)
    for name in ("negative_surprisal", "prompt_information"):
        assert DIAGNOSTICS[name].compute(facts(mask=mask)) is None
