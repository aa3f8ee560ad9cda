"""Packed rows, half precision, split groups, further statistics."""

import pytest
import torch
import torch.nn.functional as F
from score_norms_oracle import Tiny, recorded, row_gradients, score, slow_norms
from torch import Tensor, nn

from vcpo_bench.bench.score_norms import GradientSums, InexactError, ScoreNorms, inner_products, noise_to_signal


class PackedModel(nn.Module):
    """One attention layer that sees only its own segment; the head sees only chosen positions."""

    def __init__(self, tied: bool) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(7, 8), nn.Embedding(6, 8)
        self.norm, self.qkv, self.head = nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 7, bias=False)
        if tied:
            self.head.weight = self.tokens.weight

    def forward(self, tokens: Tensor, places: Tensor, segments: Tensor, chosen: slice) -> Tensor:
        x = self.tokens(tokens) + self.positions(places)
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        own = (segments[:, :, None] == segments[:, None, :]).tril()
        return self.head((x + F.scaled_dot_product_attention(q, k, v, attn_mask=own))[:, chosen])


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("chosen", [slice(None), slice(2, None)], ids=["all", "some"])
def test_packed_rows(tied: bool, chosen: slice) -> None:
    segments = torch.tensor([[0, 0, 0, 2, 2, 2, 2, -1], [1, 1, 1, 1, 1, 1, -1, -1], [3, 3, 4, 4, 4, 5, 5, 5]])
    places = torch.tensor([[0, 1, 2, 0, 1, 2, 3, 0], [0, 1, 2, 3, 4, 5, 0, 0], [0, 1, 0, 1, 2, 0, 1, 2]])
    model = PackedModel(tied).double()
    tokens = torch.randint(7, segments.shape)
    norms, logp = recorded(model, lambda: model(tokens, places, segments, chosen).log_softmax(-1)[..., 0])
    given_segments = segments if chosen == slice(None) else [segments[:, chosen], segments]
    mask = segments[:, chosen] >= 0
    totals = torch.stack([logp[segments[:, chosen] == number].sum() for number in range(6)])
    rows = row_gradients(model, totals)
    flat = torch.stack([torch.cat([gradient.flatten() for gradient in row.values()]) for row in rows])
    squared = norms.squared_norms(logp, mask, segments=given_segments)
    torch.testing.assert_close(squared, flat.square().sum(1), rtol=1e-10, atol=0)
    weights = torch.randn(6, dtype=torch.float64)
    found = norms.gradient(weights)
    assembled = torch.cat([found[parameter].flatten() for parameter in rows[0]])
    torch.testing.assert_close(assembled, weights @ flat, rtol=1e-9, atol=1e-12)


def test_packed_rows_that_see_each_other_and_unknown_positions_are_refused() -> None:
    segments = torch.tensor([[0, 0, 0, 1, 1, 1]])
    model = PackedModel(False)
    arguments = (torch.zeros_like(segments), torch.arange(6)[None], torch.zeros_like(segments))
    norms, logp = recorded(model, lambda: model(*arguments, slice(None)).log_softmax(-1)[..., 0])
    with pytest.raises(InexactError, match="influence each other"):
        norms.squared_norms(logp, segments=segments)
    with norms.record():
        logp = model(*arguments, slice(2, None)).log_softmax(-1)[..., 0]
    with pytest.raises(InexactError, match=r"no segments have the shape \[1, 4\]"):
        norms.squared_norms(logp, segments=segments)
    with norms.record():
        logp = model(*arguments, slice(2, None)).log_softmax(-1)[..., 0]
    with pytest.raises(InexactError, match=r"6 positions but segments were given for \[4\]"):
        norms.squared_norms(logp, segments=segments[:, 2:])


def test_bfloat16_autocast() -> None:
    """The backward itself is in bfloat16; what is made of it is not rounded further."""
    model, tokens = Tiny(), torch.randint(11, (6, 12))
    norms = ScoreNorms(model)

    def compute() -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return score(model, tokens, 7)

    with norms.record():
        logp = compute()
    expected = torch.stack([slow_norms(model, compute()[i : i + 1].sum(1))[0] for i in range(6)])
    squared = norms.squared_norms(logp)
    assert squared.dtype is torch.float32
    torch.testing.assert_close(squared, expected, rtol=2e-2, atol=0)
    weights = torch.randn(6)
    norms.assemble(weights)
    found = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    compute().backward(-weights[:, None].expand(6, 7))
    for gradient, parameter in zip(found, model.parameters(), strict=True):
        assert gradient.dtype is parameter.dtype
        error = (gradient - parameter.grad).norm() / parameter.grad.norm()
        assert error < 2e-2


def test_a_group_split_over_micro_batches_needs_two_sums() -> None:
    model, tokens = Tiny().double(), torch.randint(11, (6, 12))
    rewards, ratios = torch.rand(6).double(), torch.rand(6).double()
    squared = slow_norms(model, score(model, tokens, 7).sum(1))
    baseline = (ratios**2 * squared * rewards).sum() / (ratios**2 * squared).sum()
    score(model, tokens, 7).backward((-(ratios * (rewards - baseline))[:, None]).expand(6, 7))
    expected = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()

    norms, sums, found = ScoreNorms(model), GradientSums(), []
    for part in (slice(0, 2), slice(2, 6)):
        with norms.record():
            logp = score(model, tokens[part], 7)
        found.append(norms.squared_norms(logp))
        sums.add(norms, (ratios * rewards)[part], ratios[part])
    evidence = ratios**2 * torch.cat(found)
    sums.assemble([1.0, -(evidence * rewards).sum() / evidence.sum()])
    for parameter, gradient in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-9, atol=1e-12)


def test_inner_products_noise_and_head() -> None:
    model, tokens = Tiny().double(), torch.randint(11, (6, 12))
    norms, logp = recorded(model, lambda: score(model, tokens, 7))
    rows = row_gradients(model, logp.sum(1))
    flat = torch.stack([torch.cat([gradient.flatten() for gradient in row.values()]) for row in rows])
    norms.squared_norms(logp)
    groups = torch.tensor([0, 1, 0, 1, 1, 2])
    expected = torch.where(groups[:, None] == groups, flat @ flat.t(), 0.0)
    torch.testing.assert_close(inner_products(norms, groups), expected, rtol=1e-9, atol=1e-9)
    weights = torch.rand(6).double()
    samples = 6 * weights[:, None] * flat
    variance = samples.var(0).sum() / 6
    torch.testing.assert_close(noise_to_signal(norms, weights), variance / samples.mean(0).square().sum())
    head = torch.stack([sum(row[p].square().sum() for p in model.head.parameters()) for row in rows])
    torch.testing.assert_close(norms.layers()["head"], head)
