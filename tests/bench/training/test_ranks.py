"""Two ranks do what one does: the same coefficients from the same evidence, gradients that add up, the same weights."""

import copy

import pytest
import torch
from ranks.launch import parallel_trainer
from torch import Tensor

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.feeding.source import StepInput
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.learner import Learner
from vcpo_bench.bench.training.learner_settings import LearnerSettings
from vcpo_bench.bench.training.learner_step import GRAD_CLIP, LearnerStep
from vcpo_bench.errors import UsageError
from vcpo_bench.methods import parse_method


def cell(method: str, **more: object) -> CellConfig:
    sizes = {"task": "walk-eos", "prompts": 4, "responses": 4, "steps": 4, "eval_every": 100} | more
    return CellConfig(**{"method": method, "staleness": 0, "seed": 0} | sizes)


def unclipped(learner: Learner, done: LearnerStep) -> Tensor:
    flat = torch.cat([p.grad.flatten() for p in learner.policy.parameters() if p.grad is not None])
    return flat * max(done.made.norm / GRAD_CLIP, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["vcpo", "clip+gac"])
def test_two_ranks_are_one(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with parallel_trainer(cell(method), 2) as trainer:
        given: list[StepInput] = []
        done: list[LearnerStep] = []
        next_batch, update = trainer.source.next_batch, trainer.learner.update
        monkeypatch.setattr(trainer.source, "next_batch", lambda step: given.append(next_batch(step)) or given[-1])
        monkeypatch.setattr(trainer.learner, "update", lambda *arguments: done.append(update(*arguments)) or done[-1])
        twin = Learner(
            copy.deepcopy(trainer.policy), parse_method(method), LearnerSettings(trainer.config.lr, micro_batches=2)
        )
        for step in range(3):
            before = copy.deepcopy(trainer.policy.state_dict())
            trainer.advance()
            twin.policy.load_state_dict(before)  # what rank 1 did to its own weights shows in its share of the scores
            alone = twin.update(given[-1].batch, step)
            assert alone.update is not None
            assert done[-1].update is not None
            assert torch.equal(alone.update.coefficients, done[-1].update.coefficients)
            assert torch.equal(alone.entropy, done[-1].entropy)
            expected = unclipped(twin, alone)
            assert (unclipped(trainer.learner, done[-1]) - expected).norm() <= 1e-6 * expected.norm()
        assert trainer.status == ""


@pytest.mark.slow
def test_ranks_sample_the_batch_that_one_process_samples() -> None:
    config = cell("reinforce", steps=1)
    with parallel_trainer(config, 2) as trainer:
        shared = trainer.source.next_batch(0).batch
    alone = build_trainer(config).source.next_batch(0).batch
    assert torch.equal(shared.prompts, alone.prompts)
    assert torch.equal(shared.responses, alone.responses)
    assert torch.equal(shared.mask, alone.mask)
    assert torch.equal(shared.reward, alone.reward)
    torch.testing.assert_close(shared.behavior_logp, alone.behavior_logp, rtol=1e-5, atol=1e-5)


def test_cells_that_ranks_cannot_train_are_refused() -> None:
    for wrong, said in (({"staleness": 1}, "synchronously"), ({"prompts": 3}, "divided evenly")):
        with pytest.raises(UsageError, match=said), parallel_trainer(cell("reinforce", **wrong), 2):
            pass
