"""The prefix chain and its tabular policy: what is known in closed form, and small pieces of the published table."""

import itertools
import math

import numpy as np
import pytest
import torch
from prefix_chain_table import START, Estimator, TabularChain, Weighting, limit, sample_zeros, train

from vcpo_bench.bench.tasks import token_task
from vcpo_bench.bench.tasks.prefix_chain import PrefixChain
from vcpo_bench.errors import UsageError
from vcpo_bench.methods import Batch, parse_method

METHODS: dict[Estimator, str] = {"sequence": "tis", "token": "token-tis", "geometric": "geo-tis"}


def chances(size: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.02, 0.4, size)


def test_success_is_that_of_enumeration() -> None:
    chain, zero = TabularChain(6, 0.7), chances(6)
    assert chain.spare == 1
    by_hand = sum(
        math.prod(p if bit == 0 else 1 - p for bit, p in zip(bits, zero, strict=True))
        for bits in itertools.product((0, 1), repeat=6)
        if sum(bits) >= 0.7 * 6
    )
    assert chain.success(zero) == pytest.approx(by_hand)


@pytest.mark.parametrize("horizon", [128, 1024])
def test_the_start_policy_succeeds_as_often_as_said(horizon: int) -> None:
    chain = TabularChain(horizon)
    assert chain.success(np.full(horizon, 1 / (1 + math.exp(chain.start())))) == pytest.approx(START)


def test_zeros_come_at_each_positions_own_chance() -> None:
    zero, batch = chances(5), 40_000
    rows, columns = sample_zeros(zero, batch, np.random.default_rng(1))
    assert rows.max() < batch
    assert len(set(zip(rows.tolist(), columns.tolist(), strict=True))) == len(rows)
    share = np.bincount(columns, minlength=5) / batch
    assert (np.abs(share - zero) < 4 * np.sqrt(zero * (1 - zero) / batch)).all()
    both = np.bincount(rows, minlength=batch) == 5
    assert both.mean() == pytest.approx(zero.prod(), abs=4 * math.sqrt(zero.prod() / batch))


@pytest.mark.parametrize("cap", [math.inf, 1.2])
@pytest.mark.parametrize("estimator", METHODS)
def test_gradients_are_those_of_the_suites_methods(estimator: Estimator, cap: float) -> None:
    horizon, batch, chain = 12, 40, TabularChain(12, 0.7)
    now, then = chances(horizon, 2), chances(horizon, 3)
    rows, columns = sample_zeros(then, batch, np.random.default_rng(4))
    bits = np.ones((batch, horizon))
    bits[rows, columns] = 0
    reward = (bits.sum(1) >= 0.7 * horizon).astype(float)
    logp, behavior = (torch.from_numpy(np.log(np.where(bits == 1, 1 - p, p)))[None] for p in (now, then))
    rewards = torch.from_numpy(reward)[None]
    shape = logp.shape
    update = parse_method(f"{METHODS[estimator]}(cap={cap})+seq-mean-token-sum")(
        Batch(
            logp=logp,
            behavior_logp=behavior,
            mask=torch.ones(shape, dtype=torch.bool),
            valid=torch.ones(shape[:2], dtype=torch.bool),
            reward=rewards,
            version=torch.zeros(shape, dtype=torch.int64),
            now=0,
            advantage=rewards[..., None].expand(shape),
        )
    )
    theirs = (update.coefficients[0].numpy() * (bits - (1 - now))).sum(0)
    ours = Weighting(estimator, cap).gradient(chain, rows, columns, batch, now, then)
    assert reward.any()
    np.testing.assert_allclose(ours, theirs, rtol=1e-7)  # they keep 1/B in float32


@pytest.mark.parametrize("estimator", METHODS)
def test_large_batches_follow_the_limit(estimator: Estimator) -> None:
    chain, weighting = TabularChain(64, 0.9), Weighting(estimator)
    ours = train(chain, weighting, lag=20, batch=3000, updates=150, seed=0)
    assert ours > 5 * START
    assert ours == pytest.approx(limit(chain, weighting, 20, 150), abs=0.02)


def test_training_is_a_function_of_the_seed() -> None:
    ends = [train(TabularChain(64, 0.9), Weighting(), 5, 16, 60, seed) for seed in (0, 0, 1)]
    assert ends[0] == ends[1] != ends[2]


@pytest.mark.parametrize(
    ("estimator", "horizon", "lag", "published"),
    [("sequence", 1024, 500, 0.750), ("token", 1024, 500, 0.415), ("geometric", 512, 500, 0.813)],
)
def test_a_part_of_the_published_table(estimator: Estimator, horizon: int, lag: int, published: float) -> None:
    assert limit(TabularChain(horizon), Weighting(estimator), lag, 7000) == pytest.approx(published, abs=0.035)


@pytest.mark.parametrize("percent", [51, 80, 90, 99, 100])
def test_the_task_and_the_table_allow_as_many_zeros(percent: int) -> None:
    for H in (4, 10, 32, 100, 1024):
        assert PrefixChain(H=H, percent=percent).spare == TabularChain(H, percent / 100).spare


def test_the_task_counts_ones_and_refuses_marks() -> None:
    task = token_task("prefix-chain(H=10,percent=80)")
    prompts, responses, mask = task.demonstrations(0, 0, 50)
    assert task.reward(prompts, responses, mask).eq(1).all()
    assert responses.sum(1).eq(8).all()
    assert len({tuple(row) for row in responses.tolist()}) > 20
    assert torch.equal(prompts, task.training_prompts(0, 3, 50))
    for token in (0, 2):
        worse = responses.clone()
        worse[torch.arange(50), responses.argmax(1)] = token
        assert task.reward(prompts, worse, mask).eq(0).all()
    assert task.render(prompts[0], torch.tensor([1, 0] * 5), mask[0]) == ": 1010101010"


@pytest.mark.parametrize("expression", ["prefix-chain(3)", "prefix-chain(H=2000)", "prefix-chain(percent=50)"])
def test_what_the_task_refuses(expression: str) -> None:
    with pytest.raises(UsageError, match="is not legal"):
        token_task(expression)
