"""A stack on the mock device, as a function that another process can be sent."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from stacked_cells import cell, recorded

from vcpo_bench.bench.stack.stack import Stack
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.trainer import Trainer


def grad_norms(methods: list[str], task: str, updates: int, device: str = "cpu") -> list[np.ndarray]:
    """Gradient norms of the updates of each cell of a stack."""
    torch.set_num_threads(1)
    configs = [cell(method, seed=seed, lag=seed, task=task, eval_every=100) for seed, method in enumerate(methods)]
    stack = Stack([build_trainer(config, device=device) for config in configs])
    assert stack.weights.device == torch.device(device)
    for _ in range(updates):
        problems = [each.problem for each in stack.advance() if each.problem]
        assert not problems, problems
    return [np.array(recorded(trainer)["steps.parquet/grad_norm"]) for trainer in stack.trainers]


def grad_norms_on_mock(methods: list[str], task: str, updates: int) -> list[np.ndarray]:
    """The same on the mock device; for a process of its own."""
    import mock_gpu

    with mock_gpu.mocked():
        return grad_norms(methods, task, updates, mock_gpu.NAME)


def reads(method: str, record: str, cells: int) -> int:
    """How often the learner of a stack of so many cells reads from the mock device at its third update."""
    import mock_gpu

    torch.set_num_threads(1)
    waits, run, found = ("_local_scalar_dense", "equal"), mock_gpu._run, []

    def counting(func: Any, args: Any, kwargs: Any) -> Any:
        here = run(func, args, kwargs)
        tensors = [x for x in (*args, *kwargs.values()) if isinstance(x, mock_gpu.Elsewhere)]
        moved = func in mock_gpu.MOVES and isinstance(here, torch.Tensor) and here.device.type == "cpu"
        if tensors and (moved or func._schema.name.removeprefix("aten::") in waits):
            found.append(func)
        return here

    def tolist(self: Any) -> Any:
        found.append("tolist")
        return self.inner.tolist()

    with mock_gpu.mocked():
        trainers = [
            build_trainer(cell(method, seed=n, record=record, eval_every=100), device=mock_gpu.NAME)
            for n in range(cells)
        ]
        stack = Stack(trainers)
        for _ in range(2):
            stack.advance()
        given = stack._next_batches()
        mock_gpu._run, mock_gpu.Elsewhere.tolist = counting, tolist
        stack.learner.update([each.batch for each in given], [2] * cells)
    return len(found)


def resumed_on_mock(methods: list[str], task: str, updates: int, folder: Path) -> tuple[list[np.ndarray], ...]:
    """Gradient norms on the mock device of a stack, and of one saved half way and loaded by new trainers."""
    import mock_gpu

    torch.set_num_threads(1)
    configs = [cell(method, seed=seed, lag=seed, task=task, eval_every=100) for seed, method in enumerate(methods)]

    def new() -> list[Trainer]:
        return [build_trainer(config, device=mock_gpu.NAME) for config in configs]

    def advanced(stack: Stack, count: int) -> Stack:
        for _ in range(count):
            assert not [each.problem for each in stack.advance() if each.problem]
        return stack

    def norms(stack: Stack) -> list[np.ndarray]:
        return [np.array(recorded(trainer)["steps.parquet/grad_norm"]) for trainer in stack.trainers]

    with mock_gpu.mocked():
        whole = norms(advanced(Stack(new()), updates))
        half, again = advanced(Stack(new()), updates // 2), new()
        for number, (trainer, other) in enumerate(zip(half.trainers, again, strict=True)):
            own = {name: tensor.detach()[number] for name, tensor in half.weights.tensors.items()}
            trainer.policy.load_trained(own)
            place = folder / str(number)
            place.mkdir()
            trainer.save(place)
            other.load(place)
        return whole, norms(advanced(Stack(again), updates - updates // 2))
