"""A stack on the mock device, as a function that another process can be sent."""

import numpy as np
import torch
from stacked_cells import cell, recorded

from vcpo_bench.bench.stack.stack import Stack
from vcpo_bench.bench.training.build import build_trainer


def grad_norms(methods: list[str], task: str, updates: int, device: str = "cpu") -> list[np.ndarray]:
    """Gradient norms of the updates of each cell of a stack."""
    torch.set_num_threads(1)
    configs = [cell(method, seed=seed, lag=seed, task=task) for seed, method in enumerate(methods)]
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
