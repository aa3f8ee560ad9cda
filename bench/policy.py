"""The tiny policy: a pre-norm transformer small enough for a CPU and large enough for off-policy RL to go wrong.

Activations of linear layers keep the shape [B, L, width] with one trajectory per row, and each module is called once
per forward of whole sequences, so hooks on the modules see exact per-trajectory inputs and gradients.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class PolicyConfig:
    """The shape of a policy.

    Attributes:
        vocab_size: number of tokens.
        context: most positions it can see (prompt and response together).
        layers: transformer blocks.
        width: size of the residual stream.
        heads: attention heads; divides `width`.
    """

    vocab_size: int
    context: int
    layers: int = 2
    width: int = 64
    heads: int = 4


class KeyValues(NamedTuple):
    """Keys and values of one layer for shared prompts: [P * heads, Lp, head size] each."""

    keys: Tensor
    values: Tensor


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

    def forward(self, x: Tensor, mask: Tensor, prefix: KeyValues | None = None) -> tuple[Tensor, Tensor]:
        """Run the layer.

        Args:
            x: [B, L, width].
            mask: [L, L] added to the attention scores within `x`: 0 where allowed, -inf where not.
            prefix: keys and values of P prompts that the rows of `x` may also see, P dividing B: the rows of one prompt
                are consecutive.

        Returns:
            The new residual stream [B, L, width] and the projections [3, B, heads, L, head size] of this layer.
        """
        B, L, width = x.shape
        projections = self.qkv(self.norm1(x))
        prompts = B if prefix is None else prefix.keys.shape[0] // self.heads
        # [3, prompts, heads, group, L, size]: both the rows of one prompt and each row alone are then plain matrices
        split = (
            projections.view(prompts, B // prompts, L, 3, self.heads, width // self.heads)
            .permute(3, 0, 4, 1, 2, 5)
            .contiguous()
        )
        mixed = _attend(split, mask, prefix)
        mixed = mixed.permute(0, 2, 3, 1, 4).reshape(B, L, width)
        x = x + self.out(mixed)
        return x + self.down(F.gelu(self.up(self.norm2(x)))), split

    def keys_values(self, x: Tensor) -> KeyValues:
        """The keys and values only, for the last layer of a shared prompt: nothing reads its output there."""
        P, L, width = x.shape
        weight, bias = self.qkv.weight[width:], self.qkv.bias[width:]
        split = (
            F.linear(self.norm1(x), weight, bias).view(P, L, 2, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        )
        keys, values = split.reshape(2, P * self.heads, L, width // self.heads).unbind(0)
        return KeyValues(keys, values)


def _attend(split: Tensor, mask: Tensor, prefix: KeyValues | None) -> Tensor:
    """Attention of [3, P, heads, G, L, size] projections within rows and to their prompt -> [P, heads, G, L, size]."""
    _, P, heads, G, L, size = split.shape
    query, key, value = split.view(3, P * heads * G, L, size).unbind(0)
    scale = 1 / math.sqrt(size)
    own = torch.baddbmm(mask, query, key.transpose(1, 2), alpha=scale)
    if prefix is None:
        return torch.bmm(own.softmax(-1), value).view(P, heads, G, L, size)
    past_length = prefix.keys.shape[1]
    shared_query = query.view(P * heads, G * L, size)
    shared = torch.bmm(shared_query * scale, prefix.keys.transpose(1, 2)).view(P * heads * G, L, past_length)
    weights = torch.cat([shared, own], dim=-1).softmax(-1)
    past = weights[..., :past_length].reshape(P * heads, G * L, past_length)
    mixed = torch.bmm(past, prefix.values).view(-1, L, size)
    return torch.baddbmm(mixed, weights[..., past_length:], value).view(P, heads, G, L, size)


class Policy(nn.Module):
    """A decoder-only transformer with learned positions and an untied head, float32, about 0.1 M parameters.

    Args:
        config: its shape.
        seed: seed of the initial weights; the global random state is neither read nor changed.
    """

    def __init__(self, config: PolicyConfig, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        with torch.device("meta"):  # no memory, and no draw from the global random state, for weights set below
            self._build(config)
        self.to_empty(device="cpu")
        self._initialise(seed)

    def _build(self, config: PolicyConfig) -> None:
        self.tokens = nn.Embedding(config.vocab_size, config.width)
        self.positions = nn.Embedding(config.context, config.width)
        self.blocks = nn.ModuleList(Block(config.width, config.heads) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.vocab_size)

    def _initialise(self, seed: int) -> None:
        """Draw the weights: scaled normal, residual branches damped by depth, head near zero (a near-uniform start)."""
        gain = 0.5  # half the usual: an update of fixed size then moves the policy more, and lag costs more
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if parameter.ndim == 1:
                    parameter.fill_(1.0 if "norm" in name and name.endswith("weight") else 0.0)
                elif name.startswith(("tokens", "positions")):
                    parameter.normal_(0, gain * 0.5, generator=generator)
                else:
                    damping = (2 * self.config.layers) ** -0.5 if ".out." in name or ".down." in name else 1.0
                    damping = 0.2 if name.startswith("head") else damping
                    parameter.normal_(0, gain * damping * parameter.shape[1] ** -0.5, generator=generator)

    def layers(self) -> list[Block]:
        """The blocks, first to last."""
        return [cast(Block, block) for block in self.blocks]

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of the next token at every position.

        Args:
            tokens: int64 [B, L], L at most the context.

        Returns:
            float32 [B, L, vocab_size].
        """
        logits: Tensor = self.head(self.hidden(tokens))
        return logits

    def hidden(self, tokens: Tensor) -> Tensor:
        """The normalised last residual stream [B, L, width]: what the head reads."""
        x = self.embed(tokens, 0)
        mask = causal_mask(tokens.shape[1], x)
        for block in self.layers():
            x, _ = block(x, mask)
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
        past_mask, mask = causal_mask(prompts.shape[1], past), causal_mask(tokens.shape[1], x)
        *first, last = self.layers()
        for block in first:
            past, split = block(past, past_mask)
            keys, values = split[1:].flatten(1, 3).unbind(0)
            x, _ = block(x, mask, KeyValues(keys, values))
        x, _ = last(x, mask, last.keys_values(past))
        hidden: Tensor = self.norm(x)
        return hidden

    def embed(self, tokens: Tensor, first: int) -> Tensor:
        """Token plus position embedding of [B, L] tokens at positions first, first + 1, ... -> [B, L, width]."""
        # indices of full shape: a hook on `positions` then sees one row per trajectory
        places = torch.arange(first, first + tokens.shape[1], device=tokens.device).expand(tokens.shape)
        embedded: Tensor = self.tokens(tokens) + self.positions(places)
        return embedded


def causal_mask(length: int, like: Tensor) -> Tensor:
    """[length, length] of 0 on and below the diagonal and -inf above, in the type and on the device of `like`."""
    return torch.full((length, length), -math.inf, dtype=like.dtype, device=like.device).triu_(1)
