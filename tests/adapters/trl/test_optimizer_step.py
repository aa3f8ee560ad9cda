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
        step.act_on_gradient(decide(number), None)
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


def scaled_run(method: str, gradients: list[torch.Tensor], clip: bool, skipped: int = -1) -> list[torch.Tensor]:
    """The same with a loss scaler, whose scale doubles from step to step, and with clipping or without."""
    weight = torch.nn.Parameter(torch.zeros(3))
    optimizer = torch.optim.AdamW([weight], lr=0.1, weight_decay=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=1)
    step = OptimizerStep(parse_method(method), [weight])
    after = []
    for number, gradient in enumerate(gradients):
        decided = decision(skipped="logp" if number == skipped else "")
        scaler.scale((weight * gradient).sum()).backward()
        if clip:
            step.act_on_gradient(decided, scaler)
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_([weight], 1e6)
        step.before(optimizer, decided, scaler)
        scaler.step(optimizer)
        scaler.update()
        step.after(optimizer)
        optimizer.zero_grad()
        after.append(weight.detach().clone())
    return after


@pytest.mark.parametrize("clip", [False, True])
def test_with_a_loss_scaler_a_skipped_step_touches_no_moments_either(clip: bool) -> None:
    skipped = scaled_run("clip", [ONES, 5 * ONES, ONES], clip, skipped=1)
    plain = run("clip", [ONES, ONES], lambda _: decision())
    assert torch.equal(skipped[1], skipped[0])
    torch.testing.assert_close(skipped[2], plain[1])


@pytest.mark.parametrize("clip", [False, True])
def test_gac_is_the_same_with_a_loss_scaler(clip: bool) -> None:
    gradients = [ONES, torch.tensor([1.0, 0.5, 0.0]), ONES * torch.inf, torch.tensor([0.2, 1.0, 0.0])]
    scaled, plain = scaled_run("gac", gradients, clip), run("gac", gradients, lambda _: decision())
    torch.testing.assert_close(torch.stack(scaled), torch.stack(plain))
    repeated = scaled_run("gac", [ONES, ONES], clip)
    assert torch.equal(repeated[0], repeated[1])


def test_gac_remembers_the_gradient_before_a_skipped_step() -> None:
    """A skipped step has all-zero coefficients: nothing could be parallel to its gradient."""
    after = run("gac", [ONES, 0 * ONES, ONES], lambda number: decision(skipped="logp" if number == 1 else ""))
    assert torch.equal(after[0], after[1])
    assert torch.equal(after[0], after[2]), "the third step repeats the first"


def test_gac_sees_the_raw_gradient_of_the_step_before() -> None:
    first, second = torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.1, 1.0, 0.0])
    weight = torch.nn.Parameter(torch.zeros(3))
    step = OptimizerStep(parse_method("gac"), [weight])
    optimizer = torch.optim.SGD([weight], lr=1.0)
    for gradient in (first, second):
        weight.grad = gradient.clone()
        step.act_on_gradient(decision(), None)
        step.act_on_gradient(decision(), None)  # once per step, however often it is asked
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
