"""The optimizer of a whole stack, which a GPU uses, against that of each cell."""

import copy
import math

import torch
from stacked_cells import cell

from vcpo_bench.bench.stack.adamw import OwnOptimizers, StackedAdamW
from vcpo_bench.bench.stack.weights import StackedWeights
from vcpo_bench.bench.training.build import build_trainer

RATES = [1e-3, 3e-4, 1e-2]


def prepared(decay: float) -> tuple[StackedWeights, list[torch.optim.Optimizer], list]:
    learners = [build_trainer(cell("clip", weight_decay=decay)).learner for _ in RATES]
    weights = StackedWeights([learner.policy for learner in learners])
    return weights, [learner.optimizer for learner in learners], learners


def give_gradients(seed: int, *stacks: StackedWeights) -> None:
    for weights in stacks:
        generator = torch.Generator().manual_seed(seed)
        for tensor in weights.tensors.values():
            tensor.grad = 0.1 * torch.randn(tensor.shape, generator=generator)


def test_it_steps_like_the_optimizer_of_each_cell() -> None:
    ours, theirs = prepared(0.1), prepared(0.1)
    together, apart = StackedAdamW(*ours[:2]), OwnOptimizers(*theirs[:2])
    for update in range(6):
        give_gradients(update, ours[0], theirs[0])
        moves = [True, update != 2, update > 2]
        if not moves[1]:
            for tensor in ours[0].tensors.values():
                tensor.grad[1] = math.nan  # of a cell that skips: it must not reach its moments
        together.step(RATES, moves)
        apart.step(RATES, moves)
    for name, tensor in ours[0].tensors.items():
        torch.testing.assert_close(tensor, theirs[0].tensors[name], rtol=1e-6, atol=1e-7)
    for mine, other in zip(ours[2], theirs[2], strict=True):
        first, second = mine.tensors(), other.tensors()
        assert first.keys() == second.keys()
        for name, tensor in first.items():
            torch.testing.assert_close(tensor, second[name], rtol=1e-5, atol=1e-7)


def test_it_continues_the_state_of_each_cell() -> None:
    ours, theirs = prepared(0.0), prepared(0.0)
    for each in (ours, theirs):
        give_gradients(0, each[0])
        OwnOptimizers(*each[:2]).step(RATES, [True, False, True])
    assert not ours[1][1].state
    together = StackedAdamW(*ours[:2])
    give_gradients(1, ours[0], theirs[0])
    together.step(RATES, [True, True, True])
    OwnOptimizers(*theirs[:2]).step(RATES, [True, True, True])
    for mine, other in zip(ours[1], theirs[1], strict=True):
        first, second = copy.deepcopy(mine.state_dict()["state"]), other.state_dict()["state"]
        assert [float(state["step"]) for state in first.values()] == [float(s["step"]) for s in second.values()]
        for index, moments in first.items():
            torch.testing.assert_close(moments["exp_avg"], second[index]["exp_avg"], rtol=1e-6, atol=1e-8)
