"""Layers whose norms are hard to get: what they read or own does not have one row per trajectory."""

import torch
from score_norms_net import D
from torch import Tensor, nn


class Experts(nn.Module):
    """A mixture of experts that own no layers: each sees the tokens routed to it, without their rows."""

    def __init__(self, count: int = 3) -> None:
        super().__init__()
        self.router, self.weights = nn.Linear(D, count), nn.Parameter(torch.randn(count, D, D))

    def forward(self, x: Tensor) -> Tensor:
        shares, out = self.router(x).softmax(-1), torch.zeros_like(x)
        best = shares.argmax(-1)
        for expert, weight in enumerate(self.weights):
            row, column = (best == expert).nonzero(as_tuple=True)
            out = out.index_put((row, column), shares[row, column, expert, None] * torch.tanh(x[row, column] @ weight))
        return out


class Selecting(nn.Module):
    """A layer that sees only some of the tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(D, D)

    def forward(self, x: Tensor) -> Tensor:
        chosen = x[..., 0] > 0
        return x.masked_scatter(chosen.unsqueeze(-1), self.layer(x[chosen]))


class Scaled(nn.Module):
    """A parameter of a module that contains layers, and multiplies."""

    def __init__(self) -> None:
        super().__init__()
        self.gain, self.layer = nn.Parameter(torch.randn(D)), nn.Linear(D, D)

    def forward(self, x: Tensor) -> Tensor:
        return self.gain * self.layer(x)


class Tabled(nn.Module):
    """A layer that reads a table [T, d] that belongs to no trajectory."""

    def __init__(self, start: float = 1.0) -> None:
        super().__init__()
        self.gain, self.shift = nn.Parameter(torch.randn(D)), nn.Parameter(start * torch.randn(D))

    def forward(self, x: Tensor, table: Tensor) -> Tensor:
        return torch.tanh(x * self.gain + table * self.shift)


class WithTable(nn.Module):
    """Calls such a layer with as many positions as there are."""

    def __init__(self, start: float = 1.0) -> None:
        super().__init__()
        self.layer = Tabled(start)

    def forward(self, x: Tensor) -> Tensor:
        T = x.shape[1]
        return self.layer(x, torch.linspace(-1, 1, T * D, dtype=x.dtype).view(T, D))


class Attention(nn.Module):
    """torch's own, with a causal mask."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(D, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        attended: Tensor = self.attention(x, x, x, attn_mask=hidden, need_weights=False)[0]
        return x + attended


class Conv1D(nn.Module):
    """Multiplies by its weight [V, D] as stored, like GPT-2's layer of that name."""

    def __init__(self, weight: nn.Parameter) -> None:
        super().__init__()
        self.nf, self.weight, self.bias = weight.shape[1], weight, nn.Parameter(torch.zeros(weight.shape[1]))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight + self.bias
