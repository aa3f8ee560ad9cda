"""A small network around any middle layer, and tokens for it."""

from collections.abc import Callable
from typing import Any

import torch
from score_norms_oracle import check
from torch import Tensor, nn

from vcpo_bench.bench.score_norms import ScoreNorms

B, T, V, D = 5, 6, 9, 8


class Net(nn.Module):
    """Embedding, something in the middle, head."""

    def __init__(self, middle: nn.Module, tied: bool = False, bias: bool = True) -> None:
        super().__init__()
        self.tokens, self.middle, self.head = nn.Embedding(V, D), middle, nn.Linear(D, V, bias=bias)
        if tied:
            self.head.weight = self.tokens.weight

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.middle(self.tokens(tokens)))


class Through(nn.Module):
    """A middle made of some layers, by name: `way` says what becomes of what reaches it."""

    def __init__(self, way: Callable[[Any, Tensor], Tensor], **layers: nn.Module) -> None:
        super().__init__()
        self.way = way
        for name, layer in layers.items():
            self.add_module(name, layer)

    def forward(self, x: Tensor) -> Tensor:
        return self.way(self, x)


class Positioned(Net):
    """Adds to all rows of embeddings what `read` makes of the places: a parameter, or a layer."""

    def __init__(self, middle: nn.Module, places: nn.Parameter | nn.Module, read: Callable[[Any], Tensor]) -> None:
        super().__init__(middle)
        self.places, self.read = places, read

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(torch.tanh(self.middle(self.tokens(tokens) + self.read(self.places))))


class Mixing(Net):
    """Lets every trajectory see all others."""

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens)
        return self.head(self.middle(x + x.mean(0)))


def log_softmax_of(model: nn.Module, tokens: Tensor) -> Tensor:
    return model(tokens).log_softmax(-1).gather(-1, tokens.roll(-1, 1).unsqueeze(-1)).squeeze(-1)


def some_tokens(length: int = T) -> Tensor:
    tokens = torch.randint(V, (B, length), generator=torch.Generator().manual_seed(3))
    tokens[0] = 4
    return tokens


def check_net(model: nn.Module, length: int = T) -> ScoreNorms:
    model.double()
    tokens = some_tokens(length)
    return check(model, lambda: log_softmax_of(model, tokens))
