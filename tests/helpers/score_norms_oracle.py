"""Small models to take score norms of, and the slow obvious way to compute them: one trajectory at a time."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vcpo_bench.bench.score_norms import ScoreNorms


class Block(nn.Module):
    def __init__(self, width: int, bias: bool) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width, bias=bias)
        self.qkv = nn.Linear(width, 3 * width, bias=bias)
        self.out = nn.Linear(width, width, bias=bias)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, 2, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Tiny(nn.Module):
    """A stand-in for a policy: the head sees response positions only."""

    def __init__(self, vocab: int = 11, width: int = 16, layers: int = 2, bias: bool = True, context: int = 24) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, bias) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocab, bias=bias)

    def forward(self, tokens: Tensor, responses: int) -> Tensor:
        places = torch.arange(tokens.shape[1]).expand_as(tokens)
        x = self.blocks(self.tokens(tokens) + self.positions(places))
        return self.head(self.norm(x)[:, -responses - 1 : -1])


def score(model: nn.Module, tokens: Tensor, responses: int) -> Tensor:
    """Log-probabilities [B, responses] of the last tokens of each row."""
    logits = model(tokens, responses)
    return logits.log_softmax(-1).gather(-1, tokens[:, -responses:, None])[..., 0]


def row_gradients(model: nn.Module, total: Tensor) -> list[dict[nn.Parameter, Tensor]]:
    """The gradient of every element of `total` [B], one backward each."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    rows = []
    for value in total:
        found = torch.autograd.grad(value, parameters, retain_graph=True, allow_unused=True)
        rows.append({p: torch.zeros_like(p) if g is None else g for p, g in zip(parameters, found, strict=True)})
    return rows


def recorded(model: nn.Module, compute: Callable[[], Tensor]) -> tuple[ScoreNorms, Tensor]:
    """The norms of a model that have recorded how it computes log-probabilities [B, T], and these."""
    norms = ScoreNorms(model)
    with norms.record():
        logp = compute()
    return norms, logp


def check(model: nn.Module, compute: Callable[[], Tensor], rtol: float = 1e-10) -> ScoreNorms:
    """Norms, assembled gradient and inner products of `compute()` [B, T] against one backward per trajectory."""
    norms, logp = recorded(model, compute)
    rows = row_gradients(model, logp.flatten(1).sum(1))
    flat = torch.stack([torch.cat([gradient.flatten() for gradient in row.values()]) for row in rows])
    squared = norms.squared_norms(logp)
    torch.testing.assert_close(squared, flat.square().sum(1), rtol=rtol, atol=0)
    weights = torch.linspace(-1, 2, len(flat), dtype=flat.dtype)
    found = norms.gradient(weights)
    assembled = torch.cat([found.get(parameter, torch.zeros_like(parameter)).flatten() for parameter in rows[0]])
    torch.testing.assert_close(assembled, weights @ flat, rtol=rtol, atol=rtol * float(flat.abs().max()))
    products = sum(contribution.inner() for contribution in norms.contributions())
    torch.testing.assert_close(products, flat @ flat.t(), rtol=rtol, atol=rtol * float(squared.max()))
    with norms.record():
        logp = compute()
    torch.testing.assert_close(norms.squared_norms(logp, retain_graph=True), squared, rtol=rtol, atol=0)
    return norms


def slow_norms(model: nn.Module, total: Tensor) -> Tensor:
    """Squared gradient norms [B] of every element of `total`."""
    rows = row_gradients(model, total)
    return torch.stack([torch.stack([g.square().sum() for g in row.values()]).sum() for row in rows])
