"""RSPO against numbers worked out by hand, against autograd of its objective, and against GMPO."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from vcpo_bench.methods import Batch, BatchError, MissingEvidence, NonFiniteEvidence, parse_method

Make = Callable[..., Batch]


def coefficients(text: str, batch: Batch) -> torch.Tensor:
    """Without aggregation: one number per token."""
    return parse_method(f"{text}+token-sum")(batch).coefficients


def shifted(batch: Batch, shift: list[list[float]]) -> Batch:
    return replace(batch, router_shift=torch.tensor([shift], dtype=torch.float64))


def test_each_ratio_shrinks_by_its_own_shift_down_to_the_floor(make_rows: Make) -> None:
    """Ratios of 1.1 with gamma 0.9 and, where the shift would give 0.5, 0.8: 0.99 and 0.88."""
    batch = shifted(make_rows([[math.log(1.1)] * 2], [2.0]), [[-math.log(0.9), -math.log(0.5)]])
    mean = math.sqrt(0.99 * 0.88)
    assert coefficients("rspo", batch)[0, 0].tolist() == pytest.approx([2 * mean] * 2)
    assert coefficients("rspo(floor=0.5)", batch)[0, 0].tolist() == pytest.approx([2 * math.sqrt(0.99 * 0.55)] * 2)


def test_the_clip_sees_the_scaled_ratio(make_rows: Make) -> None:
    """gamma = e^-0.1. It brings a ratio of e^0.45 back under the bound e^0.4, and one of e^-0.35 beyond e^-0.4."""
    good = shifted(make_rows([[0.45, 0.6]], [1.0]), [[0.1, 0.1]])
    assert coefficients("gmpo", good)[0, 0].tolist() == [0.0, 0.0]
    assert coefficients("rspo", good)[0, 0].tolist() == pytest.approx([math.exp((0.35 + 0.4) / 2), 0.0])
    bad = shifted(make_rows([[-0.35, 0.0]], [-1.0]), [[0.1, 0.1]])
    assert coefficients("gmpo", bad)[0, 0, 0] < 0
    assert coefficients("rspo", bad)[0, 0].tolist() == pytest.approx([0.0, -math.exp((-0.4 - 0.1) / 2)])


def test_masked_tokens_do_not_count_whatever_their_shift(make_rows: Make) -> None:
    batch = shifted(make_rows([[0.1, 0.2, 0.3]], [1.0]), [[0.05, math.nan, 0.1]])
    batch.mask[0, 0, 1] = False
    scaled = math.exp((0.1 - 0.05 + 0.3 - 0.1) / 2)
    assert coefficients("rspo", batch)[0, 0].tolist() == pytest.approx([scaled, 0.0, scaled])


def test_the_coefficients_are_the_gradient_of_the_objective(make_batch: Make) -> None:
    """Of the mean over rows of A prod_t (min of w and clip(w), by the sign of A)^(1/L), w = r max(floor, e^-shift)."""
    batch = make_batch(spread=0.5)
    advantage = torch.randn(3, 4, 1, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    batch = replace(batch, advantage=advantage.expand(3, 4, 6).contiguous())
    assert batch.router_shift is not None
    logp = batch.logp.clone().requires_grad_()
    gamma = torch.exp(-batch.router_shift).clamp(min=0.95)
    sign = advantage.sign()
    scaled = sign * (logp - batch.behavior_logp + gamma.log())
    pessimistic = sign * torch.minimum(scaled, scaled.clamp(-0.4, 0.4))
    lengths = batch.mask.sum(-1).clamp(min=1)
    rows = ((pessimistic * batch.mask).sum(-1) / lengths).exp() * advantage.squeeze(-1) * batch.mask.any(-1)
    (rows.sum() / batch.mask.any(-1).sum()).backward()
    update = parse_method("rspo(floor=0.95)+seq-mean-token-mean")(batch)
    assert (gamma == 0.95).any()
    assert (gamma > 0.95).any()
    torch.testing.assert_close(update.coefficients, logp.grad)
    assert float(update.metrics["share_clipped"]) > 0


def test_routers_that_stood_still_leave_gmpo(make_batch: Make) -> None:
    batch = make_batch()
    still = replace(batch, router_shift=torch.zeros_like(batch.logp))
    assert torch.equal(coefficients("rspo", still), coefficients("gmpo", batch))
    assert torch.equal(coefficients("rspo(floor=1)", batch), coefficients("gmpo", batch))
    assert not torch.equal(coefficients("rspo", batch), coefficients("gmpo", batch))


def test_evidence_that_is_absent_or_impossible_is_refused(make_batch: Make) -> None:
    batch, method = make_batch(), parse_method("rspo")
    with pytest.raises(MissingEvidence, match=r"rspo needs router_shift; .* recorded for a mixture of experts"):
        method(replace(batch, router_shift=None))
    assert batch.router_shift is not None
    batch.mask[1, 2, 0] = True
    for value, kind, words in (
        (-0.1, BatchError, r"router_shift of row \(1, 2\) is -0\.1, which is no distance: it must be 0 or more"),
        (math.nan, NonFiniteEvidence, r"router_shift is not finite on a valid token of row \(1, 2\)"),
        (math.inf, NonFiniteEvidence, r"router_shift is not finite on a valid token of row \(1, 2\)"),
    ):
        batch.router_shift[1, 2, 0] = value
        with pytest.raises(kind, match=words):
            method(batch)
    with pytest.raises(BatchError, match=r"router_shift has shape \[3, 4\]; expected \[3, 4, 6\]"):
        make_batch(router_shift=torch.zeros(3, 4))
