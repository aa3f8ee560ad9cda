"""Every optimizer: a cell that is resumed has the bits of one that is not; the default is what it always was."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.optimizers.catalog import OPTIMIZERS
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.trainer import Trainer

pytestmark = pytest.mark.usefixtures("no_evaluations")

EXPRESSIONS = [
    *OPTIMIZERS.names(),
    "adamw(beta2=0.98)",
    "adamw(reset=2)",
    "sgd(momentum=0.9)",
    "sgd(momentum=0.9,nesterov=on)",
    "muon(scale=spectral)",
]


def trainer_of(optimizer: str = "adamw", **more: object) -> Trainer:
    values = {"task": "walk", "prompts": 2, "responses": 4, "steps": 6, "eval_every": 100, "lr": 1e-2} | more
    return build_trainer(CellConfig(method="reinforce", staleness=1, seed=0, optimizer=optimizer, **values))


def advanced(trainer: Trainer, updates: int) -> Trainer:
    for _ in range(updates):
        trainer.advance()
    return trainer


def same(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> bool:
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.parametrize("optimizer", EXPRESSIONS)
def test_a_resumed_cell_has_the_bits_of_one_that_was_not_stopped(optimizer: str, tmp_path: Path) -> None:
    whole = trainer_of(optimizer, weight_decay=0.1)
    start = {name: tensor.clone() for name, tensor in whole.policy.trained_state().items()}
    advanced(whole, 3).save(tmp_path)
    resumed = trainer_of(optimizer, weight_decay=0.1)
    resumed.load(tmp_path)
    assert same(resumed.learner.tensors(), whole.learner.tensors())
    advanced(whole, 3), advanced(resumed, 3)
    assert same(resumed.learner.tensors(), whole.learner.tensors())
    assert not any(torch.equal(start[name], tensor) for name, tensor in whole.policy.trained_state().items())


@pytest.mark.parametrize("optimizer", EXPRESSIONS)
def test_the_state_is_no_larger_than_it_says(optimizer: str) -> None:
    trainer = advanced(trainer_of(optimizer), 1)
    trained = sum(parameter.numel() for parameter in trainer.policy.trainable())
    states = trainer.learner.optimizer.state_dict()["state"].values()
    kept = sum(tensor.numel() for values in states for tensor in values.values() if tensor.dim())
    moments = OPTIMIZERS.parse(optimizer).moments
    assert (moments - 1) * trained < kept <= moments * trained or kept == moments == 0


def test_the_default_is_the_adamw_that_cells_always_had() -> None:
    usual, by_hand = trainer_of(weight_decay=0.1), trainer_of(weight_decay=0.1)
    learner = by_hand.learner
    learner.optimizer = torch.optim.AdamW(learner.policy.trainable(), lr=1e-2, weight_decay=0.1, fused=True)
    assert usual.config == replace(by_hand.config, optimizer=CellConfig.optimizer)
    assert same(advanced(usual, 5).learner.tensors(), advanced(by_hand, 5).learner.tensors())


@pytest.mark.parametrize("optimizer", ["adamw(reset=2)", "sgd(momentum=0.9)", "muon"])
def test_evidence_that_is_not_finite_moves_nothing(optimizer: str) -> None:
    trainer = advanced(trainer_of(optimizer), 2)
    before = {name: tensor.clone() for name, tensor in trainer.learner.tensors().items()}
    for queued in trainer.source.queue.values():
        queued.behavior_logp.fill_(float("nan"))
    trainer.advance()
    assert same(before, trainer.learner.tensors())
