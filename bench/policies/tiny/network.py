"""The tiny network: a pre-norm transformer small enough for a CPU and large enough for off-policy RL to go wrong.

Activations of linear layers keep the shape [B, L, width] with one trajectory per row, and each module is called once
per forward of whole sequences, so hooks on the modules see exact per-trajectory inputs and gradients.
"""

import math
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

GAIN = 0.5
"""Factor of all initial weights, half the usual: an update of fixed size then moves the policy more, lag costs more."""


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


class Block(nn.Module):
    """One pre-norm layer: causal attention, then a GELU perceptron of 4 times the width."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: Tensor, prefix: Tensor | None = None, first: int = 0) -> tuple[Tensor, Tensor]:
        """Run the layer.

        Args:
            x: [B, L, width].
            prefix: Keys and values [2, P, heads, 1, Lp, head size] of P prompts that the rows of `x` also see,
                P dividing B: the rows of one prompt are consecutive.
            first: First position whose output is wanted; earlier ones only serve as keys and values.

        Returns:
            The new residual stream [B, L - first, width], and the keys and values [2, P, heads, B / P, L, head size].
        """
        B, L, width = x.shape
        P = B if prefix is None else prefix.shape[1]
        split = self.qkv(self.norm1(x)).view(P, B // P, L, 3, self.heads, width // self.heads).permute(3, 0, 4, 1, 2, 5)
        query, own = split.split((1, 2))  # slices would each fill a zero tensor in the backward pass
        query = query[0, ..., first:, :] if first else query.squeeze(0)
        mixed = attend(query, visible(prefix, own), L if prefix is None else prefix.shape[-2] + L)
        mixed = mixed.permute(0, 2, 3, 1, 4).reshape(B, L - first, width)
        x = (x[:, first:] if first else x) + self.out(mixed)
        return x + self.down(F.gelu(self.up(self.norm2(x)))), own

    def keys_values(self, x: Tensor) -> Tensor:
        """The keys and values only, for the last layer of a shared prompt: nothing reads its output there.

        Args:
            x: [P, L, width].

        Returns:
            [2, P, heads, 1, L, head size].
        """
        P, L, width = x.shape
        weight, bias = self.qkv.weight[width:], self.qkv.bias[width:]
        split = F.linear(self.norm1(x), weight, bias).view(P, 1, L, 2, self.heads, width // self.heads)
        return split.permute(3, 0, 4, 1, 2, 5)


def visible(prefix: Tensor | None, own: Tensor) -> Tensor:
    """Keys and values of prompt and own positions, [2, ..., K, size], with K rounded up by zeros.

    Below 16 columns PyTorch's softmax is not vectorized (ten times slower); multiples of 8 suit the products.
    """
    parts = [own] if prefix is None else [prefix.expand(-1, -1, -1, own.shape[3], -1, -1), own]
    length = sum(part.shape[-2] for part in parts)
    padding = max(16, -(-length // 8) * 8) - length
    return torch.cat([*parts, own.new_zeros(()).expand(*own.shape[:-2], padding, own.shape[-1])], dim=-2)


def attend(query: Tensor, keys_values: Tensor, length: int) -> Tensor:
    """Causal attention of the last L of `length` positions: [..., L, size], [2, ..., K, size] -> [..., L, size].

    Plain batched products: for sequences this short PyTorch's fused kernel takes 1.6 times as long on a CPU.
    """
    L, size = query.shape[-2:]
    K = keys_values.shape[-2]
    # also hides the padding: it stands after the last query
    mask = torch.full((L, K), -math.inf, dtype=query.dtype, device=query.device).triu_(length - L + 1)
    q, (k, v) = query.flatten(0, -3), keys_values.flatten(1, -3).unbind(0)
    weights = torch.baddbmm(mask, q, k.transpose(1, 2), alpha=1 / math.sqrt(size)).softmax(-1)
    return torch.bmm(weights, v).view(query.shape)


class Transformer(nn.Module):
    """A decoder-only transformer with learned positions and an untied head, float32, about 0.1 M parameters.

    Args:
        config: Its shape.
        seed: Seed of the initial weights; the global random state is neither read nor changed.
    """

    def __init__(self, config: PolicyConfig, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        with torch.random.fork_rng(devices=[]):  # PyTorch draws weights of its own; below they are set
            self.tokens = nn.Embedding(config.vocab_size, config.width)
            self.positions = nn.Embedding(config.context, config.width)
            self.blocks = nn.ModuleList(Block(config.width, config.heads) for _ in range(config.layers))
            self.norm = nn.LayerNorm(config.width)
            self.head = nn.Linear(config.width, config.vocab_size)
        self._initialize(seed)

    def _initialize(self, seed: int) -> None:
        """Draw the weights: scaled normal, residual branches damped by depth, head near zero (a near-uniform start)."""
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if parameter.ndim == 1:
                    parameter.fill_(1.0 if "norm" in name and name.endswith("weight") else 0.0)
                elif name.startswith(("tokens", "positions")):
                    parameter.normal_(0, GAIN * 0.5, generator=generator)
                else:
                    damping = (2 * self.config.layers) ** -0.5 if ".out." in name or ".down." in name else 1.0
                    damping = 0.2 if name.startswith("head") else damping
                    parameter.normal_(0, GAIN * damping * parameter.shape[1] ** -0.5, generator=generator)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.head.weight.device

    def layers(self) -> list[Block]:
        """The blocks, first to last."""
        return [cast(Block, block) for block in self.blocks]

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits float32 [B, L, vocab_size] of the next token at every position of int64 [B, L] tokens."""
        logits: Tensor = self.head(self.hidden(tokens))
        return logits

    def hidden(self, tokens: Tensor, first: int = 0) -> Tensor:
        """The normalized final residual stream from position `first` on, [B, L - first, width]: the head's input."""
        x = self.embed(tokens, 0)
        *early, last = self.layers()
        for block in early:
            x, _ = block(x)
        x, _ = last(x, first=first)
        hidden: Tensor = self.norm(x)
        return hidden

    def hidden_after(self, prompts: Tensor, tokens: Tensor) -> Tensor:
        """Like `hidden` for the positions of `tokens` only, computing each prompt once for its whole group.

        Args:
            prompts: int64 [P, Lp], what comes before `tokens`.
            tokens: int64 [B, T], P dividing B: the rows of one prompt are consecutive.

        Returns:
            [B, T, width].
        """
        past, x = self.embed(prompts, 0), self.embed(tokens, prompts.shape[1])
        *early, last = self.layers()
        for block in early:
            past, keys_values = block(past)
            x, _ = block(x, keys_values)
        x, _ = last(x, last.keys_values(past))
        hidden: Tensor = self.norm(x)
        return hidden

    def embed(self, tokens: Tensor, first: int) -> Tensor:
        """Token plus position embeddings [B, L, width] of tokens [B, L] at positions first, first + 1, ..."""
        # indices of full shape: a hook on `positions` then sees one row per trajectory
        positions = torch.arange(first, first + tokens.shape[1], device=tokens.device).expand(tokens.shape)
        embedded: Tensor = self.tokens(tokens) + self.positions(positions)
        return embedded
