"""KL penalties: their coefficients are the derivatives of the estimates, in float32 too and beyond the clamps."""

import itertools
import math
from collections.abc import Callable

import pytest
import torch

from vcpo_bench.methods import Batch, parse_method

Make = Callable[..., Batch]
LOGS = [-25.0, -19.9, -12.0, -3.0, -0.5, -1e-3, 0.0, 1e-3, 0.5, 3.0, 12.0, 19.9, 25.0]
KINDS = ("k1", "k2", "k3", "abs", "forward")
WEIGHTS = ("none", "proximal", "behavior", "current", "held-proximal", "held-behavior")
CLAMP = 20.0


def autograd(
    kind: str, weight: str, logp: torch.Tensor, anchor: torch.Tensor, proximal: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """d/dlogp of the weighted estimate by autograd in float64, the ratio, and the size of what cancels in it."""
    live = logp.clone().requires_grad_()
    log = (live - anchor).clamp(-CLAMP, CLAMP)
    value = {"k1": log, "k2": log**2 / 2, "k3": torch.exp(-log) - 1 + log, "abs": log.abs(), "forward": -log}[kind]
    other = {"proximal": proximal, "behavior": anchor, "current": logp}.get(weight.removeprefix("held-"), live)
    ratio = torch.exp((live - other).clamp(-CLAMP, CLAMP))
    (value * (ratio.detach() if weight.startswith("held-") else ratio)).sum().backward()
    assert live.grad is not None
    return live.grad, ratio.detach(), (ratio * torch.exp(log.abs())).detach()


@pytest.mark.parametrize(("kind", "weight"), list(itertools.product(KINDS, WEIGHTS)))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_penalty_is_the_derivative(make_rows: Make, kind: str, weight: str, dtype: torch.dtype) -> None:
    """Every pair of log-ratios to anchor and proximal policy, inside and outside the clamp."""
    pairs = torch.tensor(list(itertools.product(LOGS, LOGS)), dtype=torch.float64)
    logp = torch.full_like(pairs[:, 0], -1.0)
    policies = {"logp": logp, "behavior_logp": logp - pairs[:, 0], "proximal_logp": logp - pairs[:, 1]}
    rows = {name: value.to(dtype) for name, value in policies.items()}
    batch = make_rows([[0.0]] * len(pairs), [0.0] * len(pairs), **{k: v.reshape(1, -1, 1) for k, v in rows.items()})
    text = f"reinforce+kl(beta=1,clamp={CLAMP},kind={kind},weight={weight})+token-sum"
    found = -parse_method(text)(batch).coefficients.double().flatten()
    expected, ratio, large = autograd(kind, weight, *(value.double() for value in rows.values()))
    eps = torch.finfo(dtype).eps
    allowed = 32 * eps * expected.abs()  # the exponential of a number up to 20: its rounding, 20 ulp of the result
    allowed += 4 * eps * ratio  # 1 - e^-l is known to an ulp of 1
    allowed += 4 * torch.finfo(torch.float64).eps * large  # the oracle itself subtracts numbers of this size
    assert ((found - expected).abs() <= allowed).all()


def test_the_unbiased_k3_does_not_cancel_in_float32(make_rows: Make) -> None:
    """Its derivative is r l; as 1 - e^-l plus e^-l - 1 + l it was 61% off here."""
    log = float(torch.tensor(-19.9, dtype=torch.float32))
    rows = {name: torch.tensor([[[value]]], dtype=torch.float32) for name, value in [("logp", 0.0), ("b", -log)]}
    batch = make_rows([[0.0]], [0.0], logp=rows["logp"], behavior_logp=rows["b"])
    found = parse_method("reinforce+kl(beta=1,weight=behavior)+token-sum")(batch).coefficients
    assert float(found) == pytest.approx(-log * math.exp(log), rel=1e-5)  # exp of -19.9 in float32: 20 ulp


def test_only_ratios_inside_the_graph_have_new_numbers() -> None:
    versions = {weight: parse_method(f"clip+kl(weight={weight})").version for weight in WEIGHTS}
    assert versions == {weight: 2 if weight in ("proximal", "behavior", "current") else 1 for weight in WEIGHTS}
