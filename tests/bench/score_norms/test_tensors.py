"""What trainers hold: tensors that require gradients, in bfloat16, not contiguous, integer or float masks."""

import pytest
import torch
from score_norms_oracle import Tiny, recorded, score, slow_norms
from torch import Tensor

from vcpo_bench.bench.score_norms import ChunkedHead, GradientSums, ScoreNorms, inner_products, noise_to_signal


def strided(x: Tensor) -> Tensor:
    """The same numbers in another order in memory."""
    return x.t().contiguous().t() if x.ndim == 2 else x.repeat_interleave(2)[::2]


@pytest.mark.parametrize("kind", [torch.bool, torch.int64, torch.float32, torch.bfloat16])
def test_masks_of_any_dtype_and_stride(kind: torch.dtype) -> None:
    model, tokens = Tiny(), torch.randint(11, (6, 12))
    mask = torch.rand(6, 7) < 0.7
    norms, logp = recorded(model, lambda: strided(score(model, tokens, 7)))
    assert not logp.is_contiguous()
    given = strided(mask.to(kind))
    if kind.is_floating_point:
        given.requires_grad_()
    expected = slow_norms(model, (logp * mask).sum(1))
    found = norms.squared_norms(logp, given)
    assert not found.requires_grad
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_weights_that_require_gradients(dtype: torch.dtype) -> None:
    model, tokens = Tiny(), torch.randint(11, (6, 12))
    sums = GradientSums(1)
    norms, logp = recorded(model, lambda: score(model, tokens, 7))
    squared = norms.squared_norms(logp)
    exact = (torch.rand(12)[::2] + 0.5).to(dtype)
    given = exact.clone().requires_grad_()[:]
    exact = exact.float()
    plain = norms.gradient(exact)
    for parameter, gradient in norms.gradient(given).items():
        assert gradient.dtype is torch.float32
        assert not gradient.requires_grad
        torch.testing.assert_close(gradient, plain[parameter])
    sums.add(norms, given)
    sums.assemble([given[0]])
    norms.assemble(given)
    for parameter in model.parameters():
        assert not parameter.grad.requires_grad
        torch.testing.assert_close(parameter.grad, -(1 + exact[0]) * plain[parameter])
    noise = noise_to_signal(norms, given)
    assert noise.dtype is torch.float32
    assert not noise.requires_grad
    torch.testing.assert_close(noise, noise_to_signal(norms, exact), rtol=1e-5, atol=0)
    products = inner_products(norms, strided(torch.tensor([0, 1, 0, 1, 1, 2])))
    torch.testing.assert_close(products.diagonal(), squared)


def test_bfloat16_log_probabilities_give_float32_norms() -> None:
    model, tokens = Tiny().bfloat16().float(), torch.randint(11, (6, 12))
    expected = slow_norms(model, score(model, tokens, 7).sum(1))
    norms = ScoreNorms(model.bfloat16())
    with norms.record():
        logp = score(model, tokens, 7)
    assert logp.dtype is torch.bfloat16
    found = norms.squared_norms(logp)
    assert found.dtype is torch.float32
    torch.testing.assert_close(found, expected, rtol=3e-2, atol=0)
    assert {gradient.dtype for gradient in norms.gradient(torch.ones(6)).values()} == {torch.bfloat16}


def test_segments_of_any_integer_type_and_stride() -> None:
    model, tokens = Tiny().double(), torch.randint(11, (3, 9))
    segments = torch.tensor([0, 1, 2])[:, None].expand(3, 8)
    found = []
    for given in (segments, segments.to(torch.int32), strided(segments)):
        norms = ScoreNorms(model)
        with norms.record():
            logp = score(model, tokens, 8)
        full = torch.cat([given[:, :1], given], 1)
        found.append(norms.squared_norms(logp, segments=[given, full]))
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=0)
    torch.testing.assert_close(found[2], found[0], rtol=0, atol=0)
    torch.testing.assert_close(found[0], slow_norms(model, score(model, tokens, 8).sum(1)), rtol=1e-10, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_chunked_head_reads_hidden_states_of_any_kind(dtype: torch.dtype) -> None:
    head = ChunkedHead(torch.nn.Linear(8, 11))
    hidden = torch.randn(2, 5, 8).to(dtype).transpose(1, 2).contiguous().transpose(1, 2).requires_grad_()
    targets, mask = strided(torch.randint(11, (2, 5))), strided(torch.rand(2, 5) < 0.7)
    assert not hidden.is_contiguous()
    found = head.statistics(hidden, targets, mask)
    expected = head.vocabulary.head(hidden.float()).log_softmax(-1).gather(2, targets[..., None])[..., 0]
    assert found.logp.dtype is torch.float32
    torch.testing.assert_close(found.logp[mask], expected[mask], rtol=1e-5, atol=1e-5)
    found.logp.sum().backward()
    assert hidden.grad.dtype is dtype
