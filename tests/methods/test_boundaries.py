"""Edges between two branches, ragged rows and masked tokens, each against a number worked out by hand."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from vcpo_bench.methods import Batch, parse_method
from vcpo_bench.methods.core.bernoulli import bernoulli_kl

Make = Callable[..., Batch]


def coefficients(text: str, batch: Batch) -> torch.Tensor:
    return parse_method(text)(batch).coefficients


def clipped(text: str, batch: Batch) -> float:
    return float(parse_method(text)(batch).metrics["share_clipped"])


def exactly(make_rows: Make, logs: list[float], advantage: list[float]) -> Batch:
    """Rows of one token whose log-ratios are these numbers to the last bit."""
    ratio = torch.tensor([logs], dtype=torch.float64).unsqueeze(-1)
    return make_rows([[0.0]] * len(logs), advantage, logp=torch.zeros_like(ratio), behavior_logp=-ratio)


# -- no advantage is neither side of a clip ---------------------------------------------------------------------------

SIDED = (
    "clip", "ctpo", "aspo", "bapo", "m2po", "gmpo", "gspo", "gspo-token", "minpro", "two-sided(delta=90)", "sat",
    "cppo", "bandpo",
)  # fmt: skip


@pytest.mark.parametrize("text", SIDED)
@pytest.mark.parametrize("log", [1.0, -1.0])
def test_tokens_without_advantage_are_never_clipped(make_rows: Make, text: str, log: float) -> None:
    assert clipped(text, make_rows([[log], [0.0]], [0.0, 0.0])) == 0.0
    assert clipped(text, make_rows([[log], [0.0]], [log, 0.0])) == 0.5


@pytest.mark.parametrize("text", ["ctpo", "clip", "minpro", "gspo-token", "rec", "rec(mask=two-side)"])
def test_a_ratio_at_its_bound_is_kept(make_rows: Make, text: str) -> None:
    """A token exactly on the bound has its gradient; the next number beyond it has none."""
    low, high = (-0.025, 0.05) if text == "ctpo" else (math.log1p(-0.25), math.log1p(0.25))
    spelled = text if text == "ctpo" else f"{text.rstrip(')')}{',' if '(' in text else '('}high=0.25,low=0.25)"
    for log, advantage in ((high, 1.0), (low, -1.0)):
        slack = 0.0 if text == "ctpo" else math.copysign(1e-15, log)  # exp and log round by that much
        assert clipped(spelled, exactly(make_rows, [log - slack], [advantage])) == 0.0
        assert clipped(spelled, exactly(make_rows, [log + math.copysign(1e-12, log)], [advantage])) == 1.0


def test_ctpo_counts_the_tokens_in_play_for_its_bounds(make_rows: Make) -> None:
    """The bound of the second token in play is high sqrt(2), also when a masked token stands between."""
    bound = 0.05 * math.sqrt(2)
    for log, share in ((bound - 1e-9, 0.0), (bound + 1e-9, 0.5)):
        batch = make_rows([[0.0, 7.0, log]], [1.0])
        batch.mask[0, 0, 1] = False
        assert clipped("ctpo", batch) == share
    geometric = make_rows([[0.06, 0.0]], [1.0])  # 0.06 is beyond 0.05, their mean 0.03 is not beyond 0.05 sqrt(2)
    assert clipped("ctpo(mode=geometric)", geometric) == 0.5


def test_ctpo_is_off_above_its_dual_bound_for_a_negative_advantage(make_rows: Make) -> None:
    assert clipped("ctpo(dual=0.1)", exactly(make_rows, [0.1, 0.1 + 1e-9], [-1.0, -1.0])) == 0.5


def test_aspo_widens_its_bound_above_an_entropy_and_not_at_it(make_rows: Make) -> None:
    entropy = torch.tensor([[[1.0], [1.0 + 1e-9]]], dtype=torch.float64)
    batch = make_rows([[math.log(1.3)], [math.log(1.3)]], [1.0, 1.0], entropy=entropy)
    assert clipped("aspo(entropy=1)", batch) == 0.5  # 1.3 is beyond 1.2, not beyond 1.4
    assert coefficients("aspo(entropy=1)+token-sum", batch)[0, :, 0].tolist() == pytest.approx([0.0, 1 / 1.3])


def test_aspo_flips_the_ratio_of_positive_tokens_alone(make_rows: Make) -> None:
    batch = make_rows([[math.log(0.8)], [math.log(1.25)], [math.log(1.1)]], [1.0, -1.0, -2.0])
    found = coefficients("aspo(eps=1)+token-sum", batch)[0, :, 0]
    assert found.tolist() == pytest.approx([1 / 0.8, -1.25, -2.2])


# -- ragged rows ------------------------------------------------------------------------------------------------------


def test_the_ess_of_applied_weights_takes_the_mean_over_the_tokens_of_a_row(make_rows: Make) -> None:
    """Rows of three and one tokens with token weights 2, 2, 2 and 1: means 2 and 1."""
    batch = make_rows([[math.log(2.0)] * 3, [0.0] * 3], [1.0, 1.0])
    batch.mask[0, 1, 1:] = False
    used = float(parse_method("token-tis(cap=9)")(batch).metrics["ess_ratio_used"])
    assert used == pytest.approx((2 + 1) ** 2 / (2 * (4 + 1)))
    added = float(parse_method("reinforce+token-tis(cap=9)")(batch).metrics["ess_ratio_used"])
    assert added == pytest.approx(used)


def test_means_over_rows_divide_by_their_tokens(make_rows: Make) -> None:
    """A row of two tokens with log-ratios log 2 and 0, and one of one token."""
    batch = make_rows([[math.log(2.0), 0.0], [0.0, 0.0]], [1.0, -1.0])
    batch.mask[0, 1, 1] = False
    geometric = math.sqrt(2.0)
    assert coefficients("geo-tis+token-sum", batch)[0].tolist() == [
        pytest.approx([geometric] * 2),
        pytest.approx([-1.0, 0.0]),
    ]
    assert coefficients("gspo(high=9,low=9)", batch)[0].tolist() == [
        pytest.approx([geometric / 4] * 2),
        pytest.approx([-0.5, 0.0]),
    ]
    assert coefficients("gmpo(high=9,low=9)", batch)[0, 0].tolist() == pytest.approx([geometric / 4] * 2)
    segments = make_rows([[math.log(2.0), 0.0, 5.0, math.log(3.0)]], [1.0])
    segments.mask[0, 0, 2] = False
    found = coefficients("tis(level=segment)+token-sum", segments)[0, 0]
    assert found.tolist() == pytest.approx([geometric, geometric, 0.0, 3.0])


# -- lag --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("of", "expected"), [("max", 1 / 5), ("mean", 1 / 4)])
def test_lag_steps_look_at_tokens_in_play_of_rows_that_have_some(make_rows: Make, of: str, expected: float) -> None:
    """Lags 4 and 2: the oldest token of the first row is masked, and the third row has lost all of its tokens."""
    version = torch.tensor([[[0, 5], [7, 8], [0, 0]]])
    batch = make_rows([[0.0, 0.0]] * 3, [1.0] * 3, version=version, now=9)
    batch.mask[0, 0, 0] = False
    batch.mask[0, 2] = False
    assert float(parse_method(f"clip+inverse-lag(of={of})")(batch).step_scale) == pytest.approx(expected)
    root = parse_method(f"clip+inverse-sqrt-lag(of={of})")(batch).step_scale
    assert float(root) == pytest.approx(math.sqrt(expected))


# -- GEPO -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", ["group", "batch"])
def test_gepo_expected_is_the_gradient_of_its_loss(make_batch: Make, scope: str) -> None:
    """d/dlogp of sum_i A_i p_i / E, E = sum q p / sum q over the group or the batch, by autograd; ragged rows."""
    batch = make_batch((2, 3, 4), seed=4, spread=0.2)
    batch.mask[0, 1, 2:] = False
    batch.mask[..., 0] = True
    advantage = torch.randn(2, 3, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    batch = replace(batch, advantage=advantage.expand(2, 3, 4).contiguous())
    logp, length = batch.logp.clone().requires_grad_(), batch.mask.sum(-1)
    p = (torch.where(batch.mask, logp, 0.0).sum(-1) / length).exp()
    q = (torch.where(batch.mask, batch.behavior_logp, 0.0).sum(-1) / length).exp()
    axes = (-1,) if scope == "group" else (-2, -1)
    expectation = (q * p).sum(axes, keepdim=True) / q.sum(axes, keepdim=True)
    (advantage.squeeze(-1) * p / expectation).sum().backward()
    text = f"gepo(high=inf,low=inf,scope={scope},variant=expected)+token-sum"
    assert logp.grad is not None
    # the aggregation acts on the sequence loss: every token gets L times what the loss of the row gives it
    found = coefficients(text, batch) / length.unsqueeze(-1)
    assert torch.allclose(found, logp.grad, rtol=1e-12, atol=1e-14)  # float64 exponentials of the same numbers


def test_gepo_plus_uses_the_rows_own_probability_while_it_is_near(make_rows: Make) -> None:
    near, far = 0.45, 0.5  # e^-l - 1 + l is 0.088 and 0.107
    batch = make_rows([[near], [far]], [1.0, 1.0])
    q = [math.exp(-1 - log) for log in (near, far)]
    expected = (q[0] ** 2 + q[1] ** 2) / (q[0] + q[1])
    found = coefficients("gepo(high=inf,low=inf,variant=plus,near=0.1)+token-sum", batch)
    assert found.flatten().tolist() == pytest.approx([math.exp(near), math.exp(-1) / expected])


# -- DPPO -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "edge"), [(torch.float32, 1e-7), (torch.float64, 1e-8)])
def test_the_bernoulli_kl_keeps_its_distance_from_certainty(dtype: torch.dtype, edge: float) -> None:
    """KL(q || p) at p = 1: in float32 1 - 1e-8 would be 1, and the logarithm of 1 - p infinite."""
    half, one = torch.tensor(0.5, dtype=dtype), torch.tensor(1.0, dtype=dtype)
    expected = 0.5 * math.log(0.5 / (1 - edge)) + 0.5 * math.log(0.5 / edge)
    rounding = 0.02 if dtype == torch.float32 else 1e-7  # 1e-7 is 1.7 ulp of 1 in float32, hence 1.2e-7 there
    assert float(bernoulli_kl(half, one)) == pytest.approx(expected, rel=rounding)
    assert float(bernoulli_kl(half, 1 - one)) == pytest.approx(expected, rel=rounding)


@pytest.mark.parametrize("robust", ["median", "winsorized"])
def test_quantiles_without_any_weight_are_rewards(make_rows: Make, robust: str) -> None:
    zeros, reward = torch.zeros(1, 2, dtype=torch.float64), torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    batch = replace(make_rows([[0.0]] * 2, [0.0] * 2, reward=reward, score_norm_sq=zeros), advantage=None)
    found = coefficients(f"reinforce+opob(robust={robust},std=off)+token-sum", batch)[0, :, 0]
    assert set(found.tolist()) <= {-1.0, -0.5, 0.0, 0.5, 1.0}
