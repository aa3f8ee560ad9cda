"""Cells trained as a stack and alone, and everything of a trainer that must not differ."""

from collections.abc import Sequence

import torch

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.stack.stack import Stack
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.trainer import Trainer


def cell(method: str, seed: int = 0, lag: int = 0, **more: object) -> CellConfig:
    """A small cell; it is evaluated every third update."""
    values = {"task": "chain", "prompts": 2, "responses": 4, "steps": 300, "eval_every": 3} | more
    return CellConfig(method=method, staleness=lag, seed=seed, **values)


def stacked(configs: Sequence[CellConfig], updates: int) -> list[Trainer]:
    """Trainers after so many updates as one stack."""
    stack = Stack([build_trainer(config) for config in configs])
    for _ in range(updates):
        problems = [each.problem for each in stack.advance() if each.problem]
        assert not problems, problems
    return stack.trainers


def alone(config: CellConfig, updates: int) -> Trainer:
    """The trainer of a cell after so many updates of its own."""
    trainer = build_trainer(config)
    for _ in range(updates):
        trainer.advance()
    return trainer


def recorded(trainer: Trainer) -> dict[str, list]:
    """Everything recorded but wall-clock times."""
    return {
        f"{table}/{column}": values
        for table, content in trainer.recorder.tables.items()
        for column, values in content.columns.items()
        if not column.startswith("seconds")
    }


def state(trainer: Trainer) -> dict[str, torch.Tensor]:
    """Everything that the rest of the run depends on."""
    return trainer.learner.tensors() | trainer.source.tensors()


def differences(one: Trainer, other: Trainer) -> list[str]:
    """Names of recorded columns and tensors of which a bit differs."""
    ours, theirs = recorded(one), recorded(other)
    found = [name for name in ours | theirs if repr(ours.get(name)) != repr(theirs.get(name))]
    first, second = state(one), state(other)
    assert first.keys() == second.keys()
    return found + [name for name in first if not torch.equal(first[name].nan_to_num(), second[name].nan_to_num())]
