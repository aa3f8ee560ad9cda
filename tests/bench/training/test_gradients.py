"""The flat gradient that diagnostics and gradient-space methods see."""

import math

import pytest
import torch
from torch import Tensor, nn

from vcpo_bench.bench.training import gradients
from vcpo_bench.bench.training.gradients import FlatGradient, dot


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(2, 2), nn.Linear(2, 3)


def with_gradient(**values: float) -> Small:
    module = Small()
    for name, value in values.items():
        for parameter in getattr(module, name).parameters():
            parameter.grad = torch.full_like(parameter, value)
    return module


def seen(module: Small, previous: Tensor | None = None) -> FlatGradient:
    return FlatGradient(module, module.head, previous)


def test_it_holds_every_parameter_that_has_a_gradient() -> None:
    module = with_gradient(body=1.0, head=2.0)
    whole = seen(module)
    assert whole.flat.tolist() == [1.0] * 6 + [2.0] * 9
    assert whole.head is not None
    assert whole.head.tolist() == [2.0] * 9
    module.body.weight.grad = torch.zeros(2, 2)
    assert whole.flat[0] == 1.0  # a copy: clipping comes later


def test_a_frozen_head_has_none() -> None:
    assert seen(with_gradient(body=1.0)).head is None
    assert math.isnan(seen(with_gradient(body=1.0)).head_norm)
    assert seen(with_gradient(body=1.0, head=2.0)).head_norm == 6.0  # 9 components of 2


def test_dots_are_with_the_previous_gradient() -> None:
    module = with_gradient(body=1.0, head=2.0)
    assert all(math.isnan(value) for value in seen(module).dots)
    assert seen(module, torch.full((15,), 0.5)).dots == pytest.approx((6 + 36, 0.5 * (6 + 18), 15 / 4))


def test_one_component_that_is_not_finite_is_found() -> None:
    module = with_gradient(body=1.0, head=2.0)
    assert seen(module).finite
    module.head.bias.grad[1] = math.inf
    assert not seen(module).finite


def test_inner_products_of_long_vectors_are_taken_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    left, right = torch.arange(10.0), torch.arange(10.0) + 1
    whole = dot(left, right)
    assert whole == float(left @ right)
    monkeypatch.setattr(gradients, "DOT_LENGTH", 3)
    assert dot(left, right) == whole
