"""The network: the architecture of Qwen3-MoE in small, with the routes of every token in and out.

Activations keep the shape [B, L, width] with one trajectory per row, so that hooks on the modules see exact
per-trajectory inputs and gradients.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vcpo_bench.bench.policies.moe.experts import Experts
from vcpo_bench.bench.policies.routed import UNROUTED
from vcpo_bench.bench.policies.seeded_network import PolicyConfig, SeededNetwork
from vcpo_bench.bench.policies.tiny.network import attend, visible

ROPE_BASE = 10_000.0
NORM_EPS = 1e-6


@dataclass(frozen=True)
class MoeConfig(PolicyConfig):
    """The shape of a mixture of experts.

    Attributes:
        experts: Experts of every layer.
        active: Experts used for a token.
        inner: Hidden size of an expert.
    """

    experts: int = 8
    active: int = 2
    inner: int = 64


class MoeBlock(nn.Module):
    """One pre-norm layer: causal attention with rotary positions and normalized queries and keys, then experts.

    Args:
        config: Shape of the network.
    """

    def __init__(self, config: MoeConfig) -> None:
        super().__init__()
        self.heads, self.size = config.heads, config.width // config.heads
        self.norm1 = nn.RMSNorm(config.width, eps=NORM_EPS)
        self.qkv = nn.Linear(config.width, 3 * config.width, bias=False)
        self.query_norm = nn.RMSNorm(self.size, eps=NORM_EPS)
        self.key_norm = nn.RMSNorm(self.size, eps=NORM_EPS)
        self.out = nn.Linear(config.width, config.width, bias=False)
        self.norm2 = nn.RMSNorm(config.width, eps=NORM_EPS)
        self.experts = Experts(config.width, config.inner, config.experts, config.active)

    def forward(
        self, x: Tensor, routes: Tensor | None, first: int = 0, noise: float = 0.0, prefix: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run the layer.

        Args:
            x: [B, L, width].
            routes: int8 [B, L, k], see `Experts.forward`; None: the router chooses everywhere.
            first: First position whose output is wanted; earlier ones only serve as keys and values.
            noise: See `rounded_logits`.
            prefix: Keys and values [2, P, heads, 1, Lp, head size] of P prompts that the rows of `x` also see,
                P dividing B: the rows of one prompt are consecutive.

        Returns:
            The new residual stream [B, L - first, width], keys and values [2, P, heads, B / P, L, head size], and the
            experts used, int64 [B, L - first, k].
        """
        B, L, width = x.shape
        P, past = (B, 0) if prefix is None else (prefix.shape[1], prefix.shape[-2])
        query, key, value = self.qkv(self.norm1(x)).view(B, L, 3, self.heads, self.size).unbind(2)
        turns = rotation(past, past + L, self.size, x.device)
        query = rotate(self.query_norm(query[:, first:]), turns[:, first:])
        query = query.view(P, B // P, L - first, self.heads, self.size).permute(0, 3, 1, 2, 4)
        own = self._heads_first(torch.stack([rotate(self.key_norm(key), turns), value]), P)
        mixed = attend(query, visible(prefix, own), past + L).permute(0, 2, 3, 1, 4).reshape(B, L - first, width)
        x = x[:, first:] + self.out(mixed)
        done, chosen = self.experts(self.norm2(x), None if routes is None else routes[:, first:], noise)
        return x + done, own, chosen

    def keys_values(self, x: Tensor) -> Tensor:
        """The keys and values only, for the last layer of a shared prompt: nothing reads its output there.

        Args:
            x: [P, L, width].

        Returns:
            [2, P, heads, 1, L, head size].
        """
        P, L, width = x.shape
        split = F.linear(self.norm1(x), self.qkv.weight[width:]).view(P, L, 2, self.heads, self.size)
        turns = rotation(0, L, self.size, x.device)
        return self._heads_first(torch.stack([rotate(self.key_norm(split[:, :, 0]), turns), split[:, :, 1]]), P)

    def _heads_first(self, keys_values: Tensor, groups: int) -> Tensor:
        """[2, B, L, heads, size] -> [2, P, heads, B / P, L, size]."""
        _, B, L, heads, size = keys_values.shape
        return keys_values.view(2, groups, B // groups, L, heads, size).permute(0, 1, 4, 2, 3, 5)


class MoeTransformer(SeededNetwork[MoeConfig]):
    """A decoder-only mixture of experts with rotary positions and an untied head, about 0.24 M parameters."""

    def _build(self, config: MoeConfig) -> None:
        self.tokens = nn.Embedding(config.vocab_size, config.width)
        self.blocks = nn.ModuleList(MoeBlock(config) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.width, eps=NORM_EPS)
        self.head = nn.Linear(config.width, config.vocab_size, bias=False)

    def layers(self) -> list[MoeBlock]:
        """The blocks, first to last."""
        return [cast(MoeBlock, block) for block in self.blocks]

    def forward(self, tokens: Tensor) -> Tensor:
        """See `SeededNetwork.forward`."""
        logits: Tensor = self.head(self.hidden(tokens)[0])
        return logits

    def hidden(self, tokens: Tensor, first: int = 0, routes: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The normalized final residual stream: the head's input.

        Args:
            tokens: int64 [B, L].
            first: First position whose output is wanted.
            routes: int8 [B, L, layers, k], experts to use; None: the routers choose.

        Returns:
            [B, L - first, width], and the experts used, int8 [B, L, layers, k]; `UNROUTED` where the last layer was not
            needed.
        """
        x, used = self.tokens(tokens), list[Tensor]()
        for depth, block in enumerate(self.layers()):
            start = first if depth == len(self.blocks) - 1 else 0
            x, _, chosen = block(x, None if routes is None else routes[:, :, depth], start)
            used.append(padded(chosen, start))
        hidden: Tensor = self.norm(x)
        return hidden, torch.stack(used, 2)

    def hidden_after(self, prompts: Tensor, tokens: Tensor, routes: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Like `hidden` for the positions of `tokens` only, computing each prompt once for its whole group.

        Args:
            prompts: int64 [P, Lp], what comes before `tokens`.
            tokens: int64 [B, L], P dividing B: the rows of one prompt are consecutive.
            routes: int8 [B, Lp + L, layers, k], the same for the prompts of a group; None: the routers choose.

        Returns:
            [B, L, width], and the experts used, int8 [B, Lp + L, layers, k]; `UNROUTED` in the last layer of the
            prompts, which is not needed.
        """
        past, x, used = self.tokens(prompts), self.tokens(tokens), list[Tensor]()
        (P, before), group = prompts.shape, len(tokens) // len(prompts)
        theirs = ours = None
        for depth, block in enumerate(self.layers()):
            if routes is not None:
                theirs, ours = routes[::group, :before, depth], routes[:, before:, depth]
            if depth == len(self.blocks) - 1:
                keys_values = block.keys_values(past)
                seen = tokens.new_full((P, before, self.config.active), UNROUTED)
            else:
                past, keys_values, seen = block(past, theirs)
            x, _, chosen = block(x, ours, prefix=keys_values)
            used.append(torch.cat([seen.repeat_interleave(group, 0), chosen], 1).to(torch.int8))
        hidden: Tensor = self.norm(x)
        return hidden, torch.stack(used, 2)


def padded(chosen: Tensor, first: int) -> Tensor:
    """Experts used, as they are recorded: int64 [B, L, k] -> int8 [B, first + L, k], `UNROUTED` before `first`."""
    unrouted = chosen.new_full((chosen.shape[0], first, chosen.shape[2]), UNROUTED)
    return torch.cat([unrouted, chosen], 1).to(torch.int8)


@cache
def _angles(length: int, size: int) -> Tensor:
    """[length, size] rotation angle of every position and coordinate."""
    frequency = ROPE_BASE ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
    return torch.outer(torch.arange(length, dtype=torch.float64), frequency).repeat(1, 2)


def rotation(start: int, stop: int, size: int, device: torch.device) -> Tensor:
    """Cosines and sines of the rotary embedding, float32 [2, stop - start, size]; sines negative in the first half."""
    angles = _angles(stop, size)[start:]
    sines = angles.sin()
    sines[:, : size // 2].neg_()
    return torch.stack([angles.cos(), sines]).float().to(device)


def rotate(x: Tensor, turns: Tensor) -> Tensor:
    """Rotate [B, L, heads, size] by `rotation` [2, L, size]."""
    cos, sin = turns.unsqueeze(2)
    one, two = x.chunk(2, -1)
    return torch.addcmul(x * cos, torch.cat([two, one], -1), sin)
