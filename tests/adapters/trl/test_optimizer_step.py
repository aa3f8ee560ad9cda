"""What a method does to an optimizer step, on a real optimizer."""

from collections.abc import Callable

import pytest
import torch

from vcpo_bench.adapters.coefficients import Decision
from vcpo_bench.adapters.trl.optimizer_step import OptimizerStep
from vcpo_bench.methods import parse_method


def decision(scale: float = 1.0, skipped: str = "") -> Decision:
    return Decision(torch.zeros(1, 1), None, scale, {}, skipped)


def run(method: str, gradients: list[torch.Tensor], decide: Callable[[int], Decision]) -> list[torch.Tensor]:
    """The weights after every step of AdamW."""
    weight = torch.nn.Parameter(torch.zeros(3))
    optimizer = torch.optim.AdamW([weight], lr=0.1, weight_decay=0.1)
    step = OptimizerStep(parse_method(method), [weight])
    after = []
    for number, gradient in enumerate(gradients):
        weight.grad = gradient.clone()
        step.act_on_gradient()
        step.before(optimizer, decide(number), None)
        optimizer.step()
        step.after(optimizer)
        assert optimizer.param_groups[0]["lr"] == 0.1
        optimizer.zero_grad()
        after.append(weight.detach().clone())
    return after


ONES = torch.ones(3)


def test_the_step_is_scaled_and_the_rate_restored() -> None:
    full = run("clip", [ONES], lambda _: decision())
    half = run("clip", [ONES], lambda _: decision(0.5))
    torch.testing.assert_close(half[0], full[0] / 2)


def test_a_skipped_step_touches_neither_weights_nor_moments() -> None:
    skipped = run("clip", [ONES, 5 * ONES, ONES], lambda number: decision(skipped="logp" if number == 1 else ""))
    plain = run("clip", [ONES, ONES], lambda _: decision())
    assert torch.equal(skipped[1], skipped[0])
    assert torch.equal(skipped[2], plain[1])


def test_with_a_loss_scaler_a_skipped_step_still_moves_nothing() -> None:
    weight = torch.nn.Parameter(torch.zeros(3))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    weight.grad = ONES.clone()
    OptimizerStep(parse_method("clip"), [weight]).before(optimizer, decision(skipped="logp"), object())
    optimizer.step()
    assert weight.grad is not None
    assert torch.equal(weight.detach(), torch.zeros(3))


def test_gac_sees_the_raw_gradient_of_the_step_before() -> None:
    first, second = torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.1, 1.0, 0.0])
    weight = torch.nn.Parameter(torch.zeros(3))
    step = OptimizerStep(parse_method("gac"), [weight])
    optimizer = torch.optim.SGD([weight], lr=1.0)
    for gradient in (first, second):
        weight.grad = gradient.clone()
        step.act_on_gradient()
        step.act_on_gradient()  # once per step, however often it is asked
        step.before(optimizer, decision(), None)
    cosine = 0.1 / second.norm()
    wanted = second - (1 - 0.05 / cosine) * 0.1 * first
    torch.testing.assert_close(weight.grad, wanted)
    assert step.previous is not None
    assert torch.equal(step.previous[0], second)


def test_gac_leaves_out_a_step_that_repeats_the_last() -> None:
    after = run("gac", [ONES, ONES], lambda _: decision())
    assert torch.equal(after[0], after[1])


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_gac_keeps_the_last_finite_gradient(bad: float) -> None:
    weight = torch.nn.Parameter(torch.zeros(3))
    step = OptimizerStep(parse_method("gac"), [weight])
    optimizer = torch.optim.SGD([weight], lr=1.0)
    for gradient in (ONES, bad * ONES):
        weight.grad = gradient.clone()
        step.before(optimizer, decision(), None)
    assert weight.grad is None
    assert step.previous is not None
    assert torch.equal(step.previous[0], ONES)
