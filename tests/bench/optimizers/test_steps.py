"""What each optimizer does to weights, against the formulas written out."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from vcpo_bench.bench.optimizers.catalog import OPTIMIZERS
from vcpo_bench.bench.optimizers.muon import hidden_matrices
from vcpo_bench.bench.policies.tiny.policy import TinyPolicy
from vcpo_bench.bench.policies.warm_start import load_warm_start
from vcpo_bench.bench.tasks import token_task
from vcpo_bench.errors import UsageError

RATE, DECAY = 0.01, 0.1


@pytest.fixture
def policy() -> TinyPolicy:
    return load_warm_start(token_task("walk"), None)


def gradients(policy: TinyPolicy, seed: int) -> list[Tensor]:
    """New gradients of all parameters, the same for a seed."""
    generator = torch.Generator().manual_seed(seed)
    made = [torch.randn(parameter.shape, generator=generator) for parameter in policy.parameters()]
    for parameter, gradient in zip(policy.parameters(), made, strict=True):
        parameter.grad = gradient.clone()
    return made


def run(policy: TinyPolicy, optimizer: torch.optim.Optimizer, steps: int) -> list[list[Tensor]]:
    """Take steps on random gradients; the gradients of the first parameter of each."""
    seen = []
    for step in range(steps):
        seen.append(gradients(policy, step))
        optimizer.step()
    return seen


def first(policy: TinyPolicy) -> np.ndarray:
    return next(policy.parameters()).detach().double().numpy().copy()


def adamw_by_hand(weight: np.ndarray, seen: list[np.ndarray], beta2: float, reset: int) -> np.ndarray:
    mean, square, done = np.zeros_like(weight), np.zeros_like(weight), 0
    for gradient in seen:
        if reset and done == reset:
            mean, square, done = np.zeros_like(weight), np.zeros_like(weight), 0
        done += 1
        mean, square = 0.9 * mean + 0.1 * gradient, beta2 * square + (1 - beta2) * gradient**2
        step = mean / (1 - 0.9**done) / (np.sqrt(square / (1 - beta2**done)) + 1e-8)
        weight = weight * (1 - RATE * DECAY) - RATE * step
    return weight


@pytest.mark.parametrize(("text", "beta2", "reset"), [("", 0.999, 0), ("beta2=0.98", 0.98, 0), ("reset=2", 0.999, 2)])
def test_adamw(policy: TinyPolicy, text: str, beta2: float, reset: int) -> None:
    weight = first(policy)
    optimizer = OPTIMIZERS.parse(f"adamw({text})" if text else "adamw").build(policy, RATE, DECAY)
    seen = [each[0].double().numpy() for each in run(policy, optimizer, 5)]
    np.testing.assert_allclose(first(policy), adamw_by_hand(weight, seen, beta2, reset), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("nesterov", [False, True])
def test_sgd_with_momentum_and_decoupled_decay(policy: TinyPolicy, nesterov: bool) -> None:
    weight = first(policy)
    text = f"sgd(momentum=0.9{',nesterov=on' if nesterov else ''})"
    seen = [each[0].double().numpy() for each in run(policy, OPTIMIZERS.parse(text).build(policy, RATE, DECAY), 4)]
    total = np.zeros_like(weight)
    for gradient in seen:
        total = 0.9 * total + gradient
        weight = weight * (1 - RATE * DECAY) - RATE * (gradient + 0.9 * total if nesterov else total)
    np.testing.assert_allclose(first(policy), weight, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("scale", ["rms", "spectral"])
def test_muon_takes_the_matrices_between_hidden_spaces_and_adamw_the_rest(policy: TinyPolicy, scale: str) -> None:
    hidden = hidden_matrices(policy)
    linear = [module.weight for module in policy.modules() if isinstance(module, nn.Linear)]
    assert len(hidden) == len(linear) - 1
    assert {id(one) for one in hidden} == {id(one) for one in linear} - {id(policy.output_head().weight)}
    before = [one.detach().clone() for one in hidden]
    embedding = first(policy)
    seen = run(policy, OPTIMIZERS.parse(f"muon(scale={scale})").build(policy, RATE, 0.0), 1)
    np.testing.assert_allclose(first(policy), embedding - RATE * np.sign(seen[0][0].numpy()), atol=1e-5)
    for old, new in zip(before, hidden, strict=True):
        rows, columns = old.shape
        factor = 0.2 * max(rows, columns) ** 0.5 if scale == "rms" else max(1.0, rows / columns) ** 0.5
        singular = torch.linalg.svdvals((old - new).detach()) / (RATE * factor)
        assert 0.6 < float(singular.median()) <= float(singular.max()) < 1.3  # five iterations come near to one


def test_the_rate_of_a_step_is_that_of_its_groups(policy: TinyPolicy) -> None:
    optimizer = OPTIMIZERS.parse("muon").build(policy, RATE, DECAY)
    before = [parameter.detach().clone() for parameter in policy.parameters()]
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    run(policy, optimizer, 1)
    assert all(torch.equal(old, new) for old, new in zip(before, policy.parameters(), strict=True))


def test_nesterov_without_momentum_is_refused() -> None:
    with pytest.raises(UsageError, match=r"write sgd\(momentum=0\.9,nesterov=on\)"):
        OPTIMIZERS.parse("sgd(nesterov=on)")
