"""Options and helpers of the methods tests."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from vcpo_bench.methods import Batch


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden", default=None, help="folder with further golden cases, laid out like tests/golden")


def _batch(shape: tuple[int, ...] = (3, 4, 6), seed: int = 0, spread: float = 0.4, **changes: Any) -> Batch:
    """A random batch with ragged lengths, holes, and every optional field; changes replace fields."""
    generator = torch.Generator().manual_seed(seed)
    T = shape[-1]

    def normal(*size: int) -> torch.Tensor:
        return torch.randn(*size, generator=generator, dtype=torch.float64)

    logp = -0.1 - torch.rand(*shape, generator=generator, dtype=torch.float64)
    length = torch.randint(1, T + 1, shape[:-1], generator=generator)
    mask = torch.arange(T) < length.unsqueeze(-1)
    mask &= torch.rand(*shape, generator=generator) < 0.9
    fields: dict[str, Any] = {
        "logp": logp,
        "behavior_logp": logp - spread * normal(*shape),
        "proximal_logp": logp - spread / 2 * normal(*shape),
        "reference_logp": logp - spread * normal(*shape),
        "entropy": normal(*shape).abs(),
        "sum_pi_sq": logp.exp() ** 2 + 0.05,
        "vocabulary_logp": normal(*shape, 5).log_softmax(-1),
        "behavior_vocabulary_logp": normal(*shape, 5).log_softmax(-1),
        "score_norm_sq": 0.1 + torch.rand(*shape[:-1], generator=generator, dtype=torch.float64),
        "mask": mask,
        "valid": torch.ones(shape[:-1], dtype=torch.bool),
        "reward": torch.randint(0, 2, shape[:-1], generator=generator).double(),
        "version": torch.randint(0, 4, shape, generator=generator),
        "now": 5,
        "parameter_distance": 0.1 + 0.3 * normal(*shape[:-1]).abs(),
        "update_norm": 0.25,
        "void_turn": torch.arange(shape[-3] * shape[-2]).view(shape[-3:-1]).expand(shape[:-1]) % 5 == 1,
    }
    return Batch(**(fields | changes))


@pytest.fixture
def make_batch() -> Callable[..., Batch]:
    return _batch


def _rows(log_ratio: list[list[float]], advantage: list[float], **changes: Any) -> Batch:
    """One group whose rows have these log-ratios to the behavior policy and these advantages; equal lengths."""
    logs = torch.tensor([log_ratio], dtype=torch.float64)
    shape = logs.shape
    fields: dict[str, Any] = {
        "logp": torch.full(shape, -1.0, dtype=torch.float64),
        "behavior_logp": -1.0 - logs,
        "mask": torch.ones(shape, dtype=torch.bool),
        "valid": torch.ones(shape[:-1], dtype=torch.bool),
        "reward": torch.zeros(shape[:-1], dtype=torch.float64),
        "advantage": torch.tensor([advantage], dtype=torch.float64).unsqueeze(-1).expand(shape).contiguous(),
        "score_norm_sq": torch.ones(shape[:-1], dtype=torch.float64),
        "version": torch.zeros(shape, dtype=torch.int64),
        "now": 1,
    }
    return Batch(**(fields | changes))


@pytest.fixture
def make_rows() -> Callable[..., Batch]:
    return _rows
