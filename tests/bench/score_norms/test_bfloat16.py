"""Score norms of bfloat16 tensors against float64: cast to float32, multiplied as they are, and with rounded products.

A GPU multiplies bfloat16 into float32 (`products`); here an emulation does, by kernels of the same names. Errors of
squared norms are relative, the largest of 8 trajectories; the bound is 1e-3.
"""

from collections.abc import Callable
from contextlib import nullcontext
from typing import NamedTuple

import pytest
import torch
from allocations import Allocations
from bfloat16_products import as_on_a_gpu
from score_norms_oracle import Tiny, score
from torch import Tensor, nn

from vcpo_bench.bench.score_norms import ChunkedHead, ScoreNorms, inner_products
from vcpo_bench.bench.score_norms.chunked_rule import ChunkedHeadRule
from vcpo_bench.bench.score_norms.embedding import EmbeddingRule
from vcpo_bench.bench.score_norms.linear import LinearRule, gram, gram_is_cheaper
from vcpo_bench.bench.score_norms.normalization import gain_rule
from vcpo_bench.bench.score_norms.rules import LayerRule
from vcpo_bench.bench.score_norms.vocabulary import HeadPositions

B, BOUND, EXACT = 8, 1e-3, 1e-5
HALF = torch.bfloat16


class Case(NamedTuple):
    """A layer's rule with its inputs, the exact norms, and the norms if products were rounded to bfloat16."""

    rule: LayerRule
    a: object
    b: Tensor
    exact: Tensor
    rounded: Tensor


def squares(gradients: Tensor) -> Tensor:
    return gradients.double().square().flatten(1).sum(1)


def rows_of(a: Tensor, b: Tensor) -> Tensor:
    return b.transpose(1, 2) @ a


def linear(T: int, d: int, p: int, bias: bool = False) -> tuple[LinearRule, Tensor, Tensor]:
    """Inputs have a common direction and a channel with large values, as those of language models have."""
    layer = nn.Linear(d, p, bias=bias)
    a, b = torch.randn(B, T, d) + 2 * torch.randn(d), torch.randn(B, T, p)
    a[..., 0] *= 50
    return LinearRule(layer.weight, layer.bias), a.to(HALF), b.to(HALF)


def matrix(T: int) -> Case:
    rule, a, b = linear(T, 32, 48)
    assert not gram_is_cheaper(T, 32, 48)
    return Case(rule, a, b, squares(rows_of(a.double(), b.double())), squares(rows_of(a.float(), b.float()).to(HALF)))


def gram_matrices(T: int) -> Case:
    """Gradients that nearly cancel over the positions."""
    d, p = (160, 224) if T == 64 else (1152, 1536)
    rule, a, b = linear(T, d, p)
    assert gram_is_cheaper(T, d, p)
    b = (b - b.float().mean(1, keepdim=True) + 0.02).to(HALF)
    rounded = (gram(a).to(HALF).double() * gram(b).to(HALF).double()).sum((1, 2))
    return Case(rule, a, b, squares(rows_of(a.double(), b.double())), rounded)


def embedding(T: int) -> Case:
    """Half of the positions hold the same token."""
    V, d = 2000, 32
    ids = torch.where(torch.rand(B, T) < 0.5, 7, torch.randint(V, (B, T)))
    b = (torch.randn(B, T, d) + 1).to(HALF)
    every = torch.arange(B)[:, None] * V + ids

    def sums(values: Tensor) -> Tensor:
        return values.new_zeros(B * V, d).index_add_(0, every.flatten(), values.flatten(0, 1)).view(B, V, d)

    return Case(EmbeddingRule(nn.Embedding(V, d).weight), ids, b, squares(sums(b.double())), squares(sums(b)))


def normalization(T: int) -> Case:
    """Most of the gradient of the gain cancels over the positions."""
    layer = nn.RMSNorm(64, dtype=HALF)
    rule = gain_rule(layer)
    assert rule is not None
    a, b = torch.randn(B, T, 64).to(HALF), torch.randn(B, T, 64)
    x = rule.normalize(a)
    share = (b * x.float()).mean(1, keepdim=True) / x.float().square().mean(1, keepdim=True)
    b = (b - 0.9 * share * x.float()).to(HALF)
    return Case(rule, a, b, squares((x.double() * b.double()).sum(1)), squares((x * b).sum(1)))


def chunked_head(T: int) -> Case:
    """A policy that is sure of its tokens, all to the same degree."""
    d, V = (16, 600) if T == 512 else (160, 700)
    head = nn.Linear(d, V, bias=False)
    hidden = torch.nn.functional.normalize(torch.randn(B, T, d), dim=-1).to(HALF)
    rule = ChunkedHead(head, HALF, 2**16).score_norm_rule()
    targets = torch.randint(V, (B, T))
    found = rule.vocabulary.read(hidden.flatten(0, 1), targets.flatten(), slopes=False)
    known = [each.view(B, T) for each in (found.logp, found.normalizer, found.entropy)]
    positions, b = HeadPositions(hidden, targets, *known), torch.zeros(B, T, 2)
    b[..., 0] = 0.713  # of which bfloat16 keeps 0.711
    logits = (hidden @ head.weight.detach().to(HALF).t()).double()
    g = 0.713 * (nn.functional.one_hot(targets, V) - (logits - known[1].double().unsqueeze(-1)).exp())
    exact, rounded = (squares(rows_of(hidden.double(), each.double())) for each in (g, g.to(HALF)))
    return Case(rule, positions, b, exact, rounded)


def error(found: Tensor, case: Case) -> float:
    return float((found / case.exact - 1).abs().max())


# of norms whose products are rounded to bfloat16: at least so large, as measured on a CPU
ROUNDING = {
    (matrix, 64): BOUND,
    (matrix, 512): 8e-4,
    (gram_matrices, 64): BOUND,
    (gram_matrices, 512): 3e-4,
    (embedding, 64): BOUND,
    (embedding, 512): 7e-4,
    (normalization, 64): 4 * BOUND,
    (normalization, 512): 4 * BOUND,
    (chunked_head, 64): BOUND,
    (chunked_head, 512): 2 * BOUND,
}


@pytest.mark.parametrize(("kind", "T"), ROUNDING)
def test_norms_are_exact_with_and_without_the_cast_but_not_with_rounded_products(
    kind: Callable[[int], Case], T: int
) -> None:
    case = kind(T)
    with_cast = error(case.rule.squared(case.a, case.b), case)
    with as_on_a_gpu() as formed:
        without = error(case.rule.squared(case.a, case.b), case)
    rounded = error(case.rounded, case)
    print(f"{kind.__name__} {T}: cast {with_cast:.1e}, as they are {without:.1e}, rounded {rounded:.1e}")
    assert max(with_cast, without) < EXACT
    assert rounded > ROUNDING[kind, T]
    assert bool(formed) == (kind in (matrix, gram_matrices, chunked_head))


def relative(found: Tensor, exact: Tensor) -> float:
    return float((found.double() - exact).norm() / exact.norm())


@pytest.mark.parametrize("T", [64, 512])
def test_the_assembled_gradient_is_rounded_as_a_plain_backward_pass_rounds_it(T: int) -> None:
    rule, a, b = linear(T, 48, 32, bias=True)
    weights = torch.linspace(-1, 2, B)
    exact = [
        torch.tensordot(weights.double(), each, 1) for each in (rows_of(a.double(), b.double()), b.double().sum(1))
    ]
    x, coefficients = a.clone().requires_grad_(), (weights[:, None, None] * b.float()).to(HALF)
    plain = torch.autograd.grad(nn.functional.linear(x, rule.parameters[0].to(HALF)), rule.parameters[0], coefficients)
    with as_on_a_gpu() as formed:
        found = rule.weighted(a, b, weights)
    assert formed == ["mm", "mm"]
    assert [each.dtype for each in found] == [torch.float32] * 2
    assert relative(found[0], exact[0]) < relative(plain[0], exact[0]) < 4e-3
    assert relative(found[1], exact[1]) < EXACT


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("T", [3, 64])
def test_inner_products_and_kept_gradients_of_a_linear_layer(T: int, transposed: bool) -> None:
    _, a, b = linear(T, 48, 32)
    layer = nn.Linear(48, 32)
    rule = LinearRule(layer.weight, layer.bias, transposed)
    rows = rule.per_row(a, b)
    with as_on_a_gpu() as formed:
        torch.testing.assert_close(rule.per_row(a, b), rows, rtol=EXACT, atol=1e-3)
        inner, kept = rule.inner(a, b), rule.per_row_if_small(a, b)
    torch.testing.assert_close(inner, sum(x.flatten(1) @ x.flatten(1).t() for x in rows), rtol=1e-4, atol=1e-2)
    assert formed
    # float32 gradients would take the place of bfloat16 tensors: 4 x 48 x 32 bytes against 2 x T x 80
    assert (kept is None) == (T == 3)


def models() -> dict[str, tuple[nn.Module, Callable[[nn.Module], Tensor]]]:
    tokens, mask = torch.randint(11, (6, 12)), torch.rand(6, 12) < 0.8

    class Chunked(nn.Module):
        """Embedding, a linear layer and a tied head in chunks, in bfloat16."""

        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.middle = nn.Embedding(11, 16), nn.Linear(16, 16)
            self.head = nn.Linear(16, 11)
            self.head.weight = self.tokens.weight
            self.chunked = ChunkedHead(self.head, HALF, 200)

        def forward(self) -> Tensor:
            hidden = self.middle(self.tokens(tokens)).tanh()
            return self.chunked.statistics(hidden, tokens.roll(-1, 1), mask).logp

    return {"dense": (Tiny(), lambda model: score(model, tokens, 7)), "chunked": (Chunked(), lambda model: model())}


@pytest.mark.parametrize("name", ["dense", "chunked"])
def test_whole_models(name: str) -> None:
    """What they find is what the CPU finds, whose products are those of casts."""
    model, compute = models()[name]
    model = model.to(HALF)
    weights = torch.linspace(-1, 2, 6)

    def everything() -> tuple[Tensor, Tensor, list[Tensor]]:
        norms = ScoreNorms(model)
        with norms.record():
            logp = compute(model)
        squared = norms.squared_norms(logp)
        return squared, inner_products(norms), [each.float() for each in norms.gradient(weights).values()]

    expected = everything()
    with as_on_a_gpu() as formed:
        found = everything()
    assert {"mm", "bmm"} <= set(formed) if name == "dense" else "mm" in formed
    torch.testing.assert_close(found[0], expected[0], rtol=1e-4, atol=0)
    torch.testing.assert_close(found[1], expected[1], rtol=1e-3, atol=1e-3 * float(expected[0].max()))
    for ours, theirs in zip(found[2], expected[2], strict=True):
        assert relative(ours, theirs.double()) < 5e-3


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_other_dtypes_have_the_same_bits_on_a_gpu_that_multiplies_bfloat16(dtype: torch.dtype) -> None:
    for T in (3, 64):
        rule, a, b = linear(T, 32, 48, bias=True)
        given, weights = (a.to(dtype), 0.01 * b.to(dtype)), torch.linspace(-1, 2, B)
        expected = [rule.squared(*given), rule.inner(*given), *rule.per_row(*given), *rule.weighted(*given, weights)]
        with as_on_a_gpu() as formed:
            found = [rule.squared(*given), rule.inner(*given), *rule.per_row(*given), *rule.weighted(*given, weights)]
        assert not formed
        assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


@pytest.mark.parametrize(("T", "d", "p"), [(64, 512, 512), (512, 128, 128)])  # Gram matrices, gradients
def test_without_the_cast_no_copy_of_the_tensors_is_made(T: int, d: int, p: int) -> None:
    rule, a, b = linear(T, d, p)
    inputs, peaks = 2 * (a.numel() + b.numel()), []
    for way in (nullcontext(), as_on_a_gpu()):
        with way, Allocations() as used:
            views = a.flatten(), b.flatten()  # counts what is there anyway
            rule.squared(a, b)
        peaks.append(used.peak - inputs)
        del views
    print(f"T = {T}, {d} to {p}: {peaks} bytes")
    assert 0 < peaks[1] < 0.4 * peaks[0]


def test_a_chunked_head_with_a_bias_and_gradients_of_its_entropy() -> None:
    head = nn.Linear(16, 600)
    rule = ChunkedHeadRule(ChunkedHead(head, HALF, 2**14).vocabulary)
    hidden, targets = torch.randn(B, 8, 16).to(HALF), torch.randint(600, (B, 8))
    known = rule.vocabulary.read(hidden.flatten(0, 1), targets.flatten(), slopes=False)[:3]
    positions = HeadPositions(hidden, targets, *(each.view(B, 8) for each in known))
    b = torch.stack([torch.ones(B, 8), 0.3 * torch.ones(B, 8)], -1)

    def everything() -> list[Tensor]:
        weighted = rule.weighted(positions, b, torch.linspace(-1, 2, B))
        return [rule.squared(positions, b), rule.inner(positions, b), *weighted]

    expected = everything()
    with as_on_a_gpu():
        found = everything()
    for ours, theirs in zip(found[:2], expected[:2], strict=True):
        torch.testing.assert_close(ours, theirs, rtol=EXACT, atol=EXACT * float(expected[0].max()))
    assert all(relative(ours, theirs.double()) < 4e-3 for ours, theirs in zip(found[2:], expected[2:], strict=True))
