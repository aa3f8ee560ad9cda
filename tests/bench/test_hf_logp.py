"""Chunked log-probabilities: the numbers and gradients of the plain way, without its memory. Needs torch only."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from allocations import Allocations
from torch import Tensor

from vcpo_bench.bench.hf.logp import TokenStatistics, token_statistics

N, H, V = 23, 8, 50


def plain(hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor) -> TokenStatistics:
    log_p = torch.nn.functional.linear(hidden, weight, bias).log_softmax(1)
    p = log_p.exp()
    return TokenStatistics(log_p.gather(1, targets[:, None])[:, 0], -(p * log_p).sum(1), p.square().sum(1))


def inputs(bias: bool) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    g = torch.Generator().manual_seed(0)
    made = (torch.randn(N, H, generator=g), torch.randn(V, H, generator=g), torch.randn(V, generator=g))
    hidden, weight, vector = (tensor.requires_grad_() for tensor in made)
    return hidden, weight, vector if bias else None, torch.randint(0, V, (N,), generator=g)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_values_and_gradients_are_those_of_the_plain_way(bias: bool, rows: int) -> None:
    arguments = inputs(bias)
    leaves = [tensor for tensor in arguments[:3] if tensor is not None]
    found, wanted = token_statistics(*arguments, chunk_bytes=4 * V * rows), plain(*arguments)
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
    assert not found.sum_pi_sq.requires_grad
    for pick in ((1.0, 0.0), (0.0, 1.0), (0.7, -0.3)):
        weights = torch.linspace(-1, 2, N)
        objective = [(weights * (pick[0] * s.logp + pick[1] * s.entropy)).sum() for s in (found, wanted)]
        ours, theirs = (torch.autograd.grad(o, leaves, retain_graph=True) for o in objective)
        for a, b in zip(ours, theirs, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_frozen_head_gets_no_gradient_and_bfloat16_is_close() -> None:
    hidden, weight, _, targets = inputs(False)
    frozen = weight.detach()
    low = token_statistics(hidden, frozen, None, targets, torch.bfloat16)
    torch.testing.assert_close(low.logp, plain(hidden, frozen, None, targets).logp, rtol=0.05, atol=0.1)
    low.logp.sum().backward()
    assert hidden.grad is not None
    assert weight.grad is None
    assert hidden.grad.dtype == torch.float32


def test_an_autocast_region_around_it_changes_nothing() -> None:
    found = token_statistics(*inputs(True))
    with torch.autocast("cpu", torch.bfloat16):
        inside = token_statistics(*inputs(True))
    for ours, theirs in zip(inside, found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


def peak(compute: Callable[..., TokenStatistics], tokens: int, vocabulary: int) -> int:
    """Bytes a forward and a backward pass allocate at most."""
    hidden = torch.randn(tokens, 16, requires_grad=True)
    weight = torch.randn(vocabulary, 16, requires_grad=True)
    with Allocations() as allocations:
        compute(hidden, weight, None, torch.zeros(tokens, dtype=torch.int64)).logp.sum().backward()
    return allocations.peak


def test_memory_does_not_grow_with_tokens_times_vocabulary() -> None:
    tokens, vocabulary, chunk = 512, 4000, 2**18

    def chunked(*arguments: Any) -> TokenStatistics:
        return token_statistics(*arguments, chunk_bytes=chunk)

    logits = 4 * tokens * vocabulary
    assert peak(plain, tokens, vocabulary) > logits  # the measurement sees what must not happen
    weights_and_chunks = 4 * 4 * vocabulary * 16 + 6 * chunk
    assert peak(chunked, tokens, vocabulary) < weights_and_chunks + 64 * tokens * 16 < logits / 2
    assert peak(chunked, 4 * tokens, vocabulary) - peak(chunked, tokens, vocabulary) < logits / 4
