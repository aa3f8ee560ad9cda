"""What the built-in networks share: weights that are a function of a seed."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class PolicyConfig:
    """The shape of a policy.

    Attributes:
        vocab_size: Number of tokens.
        context: Most positions it can see (prompt and response together).
        layers: Transformer blocks.
        width: Size of the residual stream.
        heads: Attention heads; divides `width`.
    """

    vocab_size: int
    context: int
    layers: int = 2
    width: int = 64
    heads: int = 4


C = TypeVar("C", bound=PolicyConfig)


class SeededNetwork(nn.Module, Generic[C]):
    """A network with a head `head`, float32.

    Args:
        config: Its shape.
        seed: Seed of the initial weights; the global random state is neither read nor changed.

    Class attributes:
        gain: Factor of all random weights.
    """

    gain: ClassVar[float] = 1.0
    head: nn.Linear

    def __init__(self, config: C, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        with torch.random.fork_rng(devices=[]):  # PyTorch draws weights of its own; below they are set
            self._build(config)
        self._initialize(seed)

    @abstractmethod
    def _build(self, config: C) -> None:
        """Make the modules, without their weights."""

    def _initialize(self, seed: int) -> None:
        """Draw the weights: scaled normal, residual branches damped by depth, head near zero (a near-uniform start)."""
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if parameter.ndim == 1:
                    parameter.fill_(1.0 if "norm" in name and name.endswith("weight") else 0.0)
                elif name.startswith(("tokens", "positions")):
                    parameter.normal_(0, self.gain * 0.5, generator=generator)
                else:
                    damping = (2 * self.config.layers) ** -0.5 if ".out." in name or ".down." in name else 1.0
                    damping = 0.2 if name.startswith("head") else damping
                    parameter.normal_(0, self.gain * damping * parameter.shape[1] ** -0.5, generator=generator)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.head.weight.device

    @abstractmethod
    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of the next token at every position.

        Args:
            tokens: int64 [B, L], L at most the context.

        Returns:
            float32 [B, L, vocab_size].
        """
