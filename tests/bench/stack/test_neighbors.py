"""What happens to one cell of a stack does not reach the others."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from stacked_cells import alone, cell, differences, stacked

from vcpo_bench.bench.stack.stack import Stack
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.step_recorder import MAX_SKIPPED
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.methods import load_plugin

pytestmark = pytest.mark.usefixtures("few_questions")


def poisoned(trainer: Trainer) -> Trainer:
    """With weights that are not numbers."""
    with torch.no_grad():
        trainer.policy.output_head().weight.fill_(math.nan)
    return trainer


@pytest.mark.parametrize("method", ["clip", "reinforce+entropy(beta=0.02)", "vcpo", "vcpo+entropy(beta=0.02)"])
def test_a_cell_whose_evidence_is_not_finite(method: str) -> None:
    configs = [cell(method, seed=seed, lag=1) for seed in range(3)]
    trainers = [build_trainer(config) for config in configs]
    poisoned(trainers[1])
    stack = Stack(trainers)
    for _ in range(MAX_SKIPPED):
        stack.advance()
    assert [trainer.status for trainer in trainers] == ["", "nan", ""]
    assert trainers[1].recorder.tables["steps.parquet"].columns["nonfinite"] == ["logp"] * MAX_SKIPPED
    for trainer in (trainers[0], trainers[2]):
        assert not differences(trainer, alone(trainer.config, MAX_SKIPPED))


class Failing:
    """An observer that raises at the second update."""

    def __init__(self) -> None:
        self.seen = 0

    def observe(self, row: Mapping[str, Any]) -> str:
        self.seen += 1
        if self.seen == 2:
            raise ValueError("an observer with an error")
        return ""


def test_a_cell_that_raises() -> None:
    configs = [cell("clip", seed=seed) for seed in range(3)]
    trainers = [build_trainer(config, observer=Failing() if config.seed == 1 else None) for config in configs]
    stack = Stack(trainers)
    assert not [each for each in stack.advance() if each.problem]
    assert [str(each.problem or "") for each in stack.advance()] == ["", "an observer with an error", ""]
    for trainer in (trainers[0], trainers[2]):
        assert not differences(trainer, alone(trainer.config, 2))


def test_a_plug_in_that_takes_the_mean_of_everything() -> None:
    load_plugin(Path(__file__).parents[2] / "helpers" / "mixing_plugin.py")
    for method in ("self-norm", "clip+drift-step+overall-mean"):
        for trainer in stacked([cell(method, seed=seed, lag=1, lr=3e-3) for seed in range(3)], 4):
            assert not differences(trainer, alone(trainer.config, 4))
