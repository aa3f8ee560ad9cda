"""Score centering in the learner: what the sampler records, and the gradient that reaches the weights."""

import pytest
import torch
from torch import Tensor

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.policies.catalog import check_distributions
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.bench.trajectories import Trajectories
from vcpo_bench.errors import UsageError

METHOD = "token-tis(cap=1.5)+score-centering(mode=tis,cap=1.5)"


def trainer_of(**more: object) -> Trainer:
    config = {"task": "walk-eos", "prompts": 4, "responses": 4, "steps": 4, "eval_every": 100, "lr_warmup": 0} | more
    return build_trainer(CellConfig(method=METHOD, staleness=2, seed=0, **config))


def consumed(trainer: Trainer, updates: int) -> Trajectories:
    """What the next update consumes, after some."""
    for _ in range(updates):
        trainer.advance()
    return trainer.source.next_batch(trainer.step).batch


def test_the_distribution_of_every_token_is_recorded() -> None:
    batch = consumed(trainer_of(), 1)
    assert batch.sampler_logp is not None
    of_drawn = batch.sampler_logp.gather(-1, batch.responses.unsqueeze(-1)).squeeze(-1)
    assert torch.equal(of_drawn[batch.mask], batch.behavior_logp[batch.mask])
    assert torch.allclose(batch.sampler_logp.exp().sum(-1)[batch.mask], torch.ones(int(batch.mask.sum())))


@pytest.mark.parametrize("cut", [{}, {"micro_tokens": 64}])
def test_the_gradient_is_that_of_the_whole_loss(cut: dict[str, int]) -> None:
    trainer = trainer_of(**cut)
    batch = consumed(trainer, 3)  # of weights two updates ago
    learner, policy = trainer.learner, trainer.policy
    assert batch.sampler_logp is not None
    scores = policy.score(batch.flat())
    p, q = scores.distribution.permute(1, 2, 0), batch.sampler_logp.flatten(0, 1)
    reward = batch.reward.float()
    spread = (reward - reward.mean(1, keepdim=True)) / reward.std(1, keepdim=True, correction=0).clamp(min=1e-8)
    mask = batch.mask.flatten(0, 1)
    weight = spread.flatten().unsqueeze(1) * mask / mask.sum(1, keepdim=True) / len(mask)
    ratio = (scores.logp - batch.behavior_logp.flatten(0, 1)).detach().exp().clamp(max=1.5)
    expected = (torch.minimum(p.exp(), 1.5 * q.exp()).detach() * p).sum(-1)
    loss = -(weight * (ratio * scores.logp - torch.where(mask, expected, 0.0))).sum()
    theirs = torch.autograd.grad(loss, list(policy.parameters()))

    scored = learner._score_all(batch, trainer.step)
    learner._backward(scored, learner.method(scored.evidence))
    for parameter, gradient in zip(policy.parameters(), theirs, strict=True):
        assert parameter.grad is not None
        close(parameter.grad, gradient)


def close(ours: Tensor, theirs: Tensor) -> None:
    """Float32 sums in another order."""
    assert float((ours - theirs).abs().max()) <= 1e-5 * max(float(theirs.abs().max()), 1e-3)


def test_a_language_model_is_refused_in_one_line() -> None:
    with pytest.raises(UsageError, match="vocabulary is too large"):
        check_distributions(METHOD, {"vocabulary_logp"}, "some-model")
