"""A policy on a Tinker server: what is sent, what is read, and that a step is the one that its coefficients mean."""

from typing import Any

import pytest
import tinker_cells
import torch

from vcpo_bench.bench.learners.tinker_api.policy import TinkerPolicy
from vcpo_bench.bench.learners.tinker_api.rows import Row, averaged_over, unpadded
from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.tasks import token_task
from vcpo_bench.bench.trajectories import Trajectories

EOS = token_task(tinker_cells.TASK).eos


def opened(**changes: Any) -> tuple[TinkerPolicy, Trajectories]:
    """The policy of a cell, and its first batch."""
    trainer = tinker_cells.trainer(**changes)
    assert isinstance(trainer.policy, TinkerPolicy)
    return trainer.policy, trainer.source.next_batch(0).batch


def test_rows_lose_their_padding() -> None:
    prompts = torch.tensor([[0, 0, 5], [0, 6, 7]])
    responses = torch.tensor([[1, 2], [3, 1], [4, 1], [1, 1]])
    mask = torch.tensor([[True, True], [True, False], [True, True], [True, False]])
    rows = unpadded(prompts, prompts != 0, responses, mask)
    assert rows == [Row([5], [1, 2]), Row([5], [3]), Row([6, 7], [4, 1]), Row([6, 7], [1])]
    assert averaged_over(rows, "mean") == [8.0, 4.0, 12.0, 8.0]  # rows x positions that have a target
    assert averaged_over(rows, "sum") == [1.0] * 4


def test_log_probabilities_of_samples_and_scores_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    tinker_cells.connect(monkeypatch)
    policy, batch = opened()
    scores = policy.score(batch.flat())
    assert torch.allclose(scores.logp.view(batch.mask.shape), batch.behavior_logp, atol=1e-6)
    assert bool((scores.logp[~scores.mask] == 0).all())
    assert bool(scores.entropy[scores.mask].isnan().all())
    assert bool((batch.mask.sum(-1) < batch.mask.shape[-1]).any())  # some ended early


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_step_is_adamw_on_the_gradient_that_coefficients_mean(
    reduction: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, _ = tinker_cells.connect(monkeypatch, reduction)
    settings = {"learner": f"tinker(reduction={reduction})", "optimizer": "adamw(beta1=0.8,beta2=0.9,eps=0.001)"}
    policy, batch = opened(weight_decay=0.1, **settings)
    weights = torch.nn.Parameter(policy.trained.weights.detach().clone())
    own = torch.optim.AdamW([weights], lr=0.02, betas=(0.8, 0.9), eps=0.001, weight_decay=0.1)
    rows = unpadded(batch.prompts, policy.real(batch.prompts), *batch.flat()[1:3])
    generator = torch.Generator().manual_seed(1)
    for _ in range(3):
        coefficients = torch.randn(batch.flat()[1].shape, generator=generator)
        norm = policy.step(batch.flat(), policy.score(batch.flat()).logp, coefficients, 0.02, 0.7)
        own.zero_grad()
        log_pi = weights.log_softmax(1)
        loss = torch.zeros(())
        for row, values in zip(rows, coefficients, strict=True):
            before = [row.prompt[-1], *row.response[:-1]]
            loss = loss - (values[: len(before)] * log_pi[before, row.response]).sum()
        loss.backward()
        assert norm == pytest.approx(float(weights.grad.norm()), rel=1e-4)  # type: ignore[union-attr]
        own.step()
        assert torch.allclose(policy.trained.weights, weights, atol=1e-5)
    assert policy.version == 3
    assert server.steps[0]["grad_clip_norm"] == 0.7


def test_weights_are_published_before_the_first_sample_of_a_version_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server, _ = tinker_cells.connect(monkeypatch)
    policy, batch = opened()
    noise = torch.rand(12, policy_length(batch), dtype=torch.float64)
    policy.sample(Draw(batch.prompts, noise, EOS))
    assert server.calls.count("publish") == 1
    policy.step(batch.flat(), policy.score(batch.flat()).logp, torch.ones(batch.flat()[1].shape), 0.1, 1.0)
    assert server.calls.count("publish") == 1
    policy.sample(Draw(batch.prompts, noise, EOS))
    assert server.calls.count("publish") == 2


def policy_length(batch: Trajectories) -> int:
    return int(batch.mask.shape[-1])


def test_samples_depend_on_the_noise_and_greedy_ones_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    server, _ = tinker_cells.connect(monkeypatch)
    policy, batch = opened()
    noise = torch.rand(6, policy_length(batch), dtype=torch.float64)
    asked = server.calls.count("sample")
    first, again = (policy.sample(Draw(batch.prompts, noise, EOS)).responses for _ in range(2))
    assert torch.equal(first, again)
    assert server.calls.count("sample") == asked + 6  # one request per prompt
    other = policy.sample(Draw(batch.prompts, noise.flip(0), EOS)).responses
    assert not torch.equal(first, other)
    cold = torch.tensor([True, False] * 3)
    one, two = (policy.sample(Draw(batch.prompts, each, EOS, cold)).responses for each in (noise, noise.flip(0)))
    assert torch.equal(one[cold], two[cold])
    assert not torch.equal(one[~cold], two[~cold])


def test_a_saved_state_continues_elsewhere_with_its_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    server, line = tinker_cells.connect(monkeypatch)
    policy, batch = opened()
    other, _ = opened()

    def step(which: TinkerPolicy) -> None:
        which.step(batch.flat(), which.score(batch.flat()).logp, torch.ones(batch.flat()[1].shape), 0.01, 1.0)

    step(policy)
    path, witness = policy.save_state(), policy.witness()
    assert policy.save_state() == path  # nothing has changed since
    other.load_state(path, 1, witness)
    assert other.version == 1
    step(policy)
    step(other)
    assert torch.equal(policy.trained.weights, other.trained.weights)
    assert policy.save_state() != path
    assert ("POST", "/api/v1/unload_model") in [each[:2] for each in line.requests]  # the model that `other` began with
    assert server.calls.count("load") == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda given: given[:-1], "3 samples where 4"),
        (lambda given: [cut(one, tokens=[]) for one in given], "0 tokens"),
        (lambda given: [cut(one, logprobs=None) for one in given], "with 0 log-probabilities"),
        (lambda given: [cut(one, tokens=one.tokens * 9, logprobs=one.logprobs * 9) for one in given], "at most"),
    ],
)
def test_answers_that_do_not_fit_are_refused(change: Any, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    server, _ = tinker_cells.connect(monkeypatch)
    policy, batch = opened()
    server.change = change
    with pytest.raises(RuntimeError, match=said):
        policy.sample(Draw(batch.prompts, torch.rand(12, policy_length(batch), dtype=torch.float64), EOS))


def cut(one: Any, **changed: Any) -> Any:
    return type(one)(one.values | changed)


def test_what_a_server_cannot_do_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    tinker_cells.connect(monkeypatch)
    policy, batch = opened()
    calls = (lambda: policy.score_rows(batch.flat()), lambda: policy.decoding(batch.prompts, 1, 1), policy.extend)
    for call in calls:
        with pytest.raises(RuntimeError, match="cannot do this"):
            call()
    with pytest.raises(RuntimeError, match="cannot do this"):
        policy.score(batch.flat()).differentiable_entropy()
