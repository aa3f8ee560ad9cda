"""Token-by-token evaluation of the mixture of experts; laid out like `policies.tiny.decoding`, with routes recorded."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from vcpo_bench.bench.policies.cached_decoder import CachedDecoder
from vcpo_bench.bench.policies.moe.experts import Experts, choose, expert_logp, rounded_logits, watched
from vcpo_bench.bench.policies.moe.network import NORM_EPS, MoeBlock, MoeTransformer, padded, rotation
from vcpo_bench.bench.policies.routed import UNROUTED


class _Layer(NamedTuple):
    """The weights of one block as its step uses them, the attention scale folded into the norm of the queries."""

    qkv: Tensor  # [3 * width, width]
    query_norm: Tensor  # [size, 1]; so the next
    key_norm: Tensor
    out: Tensor  # [width, width], input first
    up: Tensor  # [2 * E * inner, width], the gates of all experts first
    down: Tensor  # [width, E * inner]


class MoeDecoder(CachedDecoder):
    """The state of decoding B responses: weights, key-value cache, position, and the routes of every token so far.

    Args:
        network: Its weights are read now.
        prompts: int64 [P, Lp], P dividing `rows`: the rows of one prompt are consecutive, and it is evaluated once.
        rows: B, the number of responses.
        length: Most tokens of a response.
        noise: See `experts.rounded_logits`.
        records: Whether to record what the routers say.

    Attributes:
        first: Logits of the first token of each response, [V, B].
        routes: int8 [B, Lp + length, layers, k], `UNROUTED` at positions that no router has seen; rows as at the start.
        router_logp: float32 of the same shape, log-probabilities of these experts from the last token of the prompt on,
            where they are recorded; else empty.
    """

    def __init__(
        self,
        network: MoeTransformer,
        prompts: Tensor,
        rows: int,
        length: int,
        noise: float = 0.0,
        records: bool = False,
    ) -> None:
        config, prompts = network.config, prompts.to(network.device)
        self.network, self.position, self.noise = network, prompts.shape[1], noise
        self.blocks = network.layers()
        self.layers = [_prepare(block) for block in self.blocks]
        positions = self.position + length
        # [keys and values, heads, size, position, row]; the last token of a response is never an input
        shape = (2, config.heads, config.width // config.heads, positions - 1, rows)
        self.caches = [torch.empty(shape, device=network.device) for _ in self.blocks]
        self.turns = rotation(0, positions, shape[2], network.device)
        kinds = (rows, positions, config.layers, config.active)
        self.routes = torch.full(kinds, UNROUTED, dtype=torch.int8, device=network.device)
        self.router_logp = torch.zeros(kinds if records else (0,), device=network.device)
        self.records = records
        self.rows = torch.arange(rows, device=network.device)  # those still decoded
        self.first = self._prefill(prompts, rows // prompts.shape[0])

    def _prefill(self, prompts: Tensor, group: int) -> Tensor:
        """Put keys and values of the prompts into the cache, repeated for each row of a group -> `first`."""
        x: Tensor = self.network.tokens(prompts)
        for depth, (block, cache) in enumerate(zip(self.blocks, self.caches, strict=True)):
            start = self.position - 1 if block is self.blocks[-1] else 0
            with watched([block.experts] if self.records else []) as heard:
                x, keys_values, chosen = block(x, None, start, self.noise)
            for said in heard:
                last = expert_logp(rounded_logits(said[:, -1], self.noise), chosen[:, -1])
                self.router_logp[:, self.position - 1, depth] = last.repeat_interleave(group, 0)
            # [2, P, heads, 1, L, size] -> [2, heads, size, L, P * group]
            cache[:, :, :, : self.position] = keys_values.squeeze(3).permute(0, 2, 4, 3, 1).repeat_interleave(group, -1)
            self.routes[:, : self.position, depth] = padded(chosen, start).repeat_interleave(group, 0)
        logits: Tensor = self.network.head(self.network.norm(x.squeeze(1)))
        return logits.t().repeat_interleave(group, -1)

    def reload(self) -> None:
        """Read the weights again and keep the cache, whose entries the old weights computed."""
        self.layers = [_prepare(block) for block in self.blocks]

    def keep(self, rows: Tensor) -> None:
        """See `CachedDecoder.keep`; the routes stay where they are, as rows of the start."""
        self.rows = self.rows[rows]
        super().keep(rows)

    def step(self, token: Tensor) -> Tensor:
        """Feed one token per row, int64 [B] on the policy's device, and get the logits of the next one, [V, B]."""
        t, network = self.position, self.network
        x = F.embedding(token, network.tokens.weight)
        turns = self.turns[:, t].unsqueeze(-1)
        for depth, (block, layer, cache) in enumerate(zip(self.blocks, self.layers, self.caches, strict=True)):
            width, rows = x.shape[1], x.shape[0]
            projections = (layer.qkv @ block.norm1(x).t()).view(3, block.heads, block.size, rows)
            query = _turned(_normed(projections[0], layer.query_norm), turns).unsqueeze(2)
            cache[0, :, :, t] = _turned(_normed(projections[1], layer.key_norm), turns)
            cache[1, :, :, t] = projections[2]
            weights = (cache[0, :, :, : t + 1] * query).sum(1).softmax(1)
            mixed = (cache[1, :, :, : t + 1] * weights.unsqueeze(1)).sum(2).view(width, rows)
            x = torch.addmm(x, mixed.t(), layer.out)
            x = x + self._experts(block.experts, layer, block.norm2(x), depth)
        self.position += 1
        logits: Tensor = network.head(network.norm(x))
        return logits.t()

    def _experts(self, experts: Experts, layer: _Layer, x: Tensor, depth: int) -> Tensor:
        """[B, width] -> [B, width]; all experts at once: for few tokens, two large products beat many small ones."""
        logits = rounded_logits(experts.router(x), self.noise)
        chosen = choose(logits, experts.active, None)
        self.routes[self.rows, self.position, depth] = chosen.to(torch.int8)
        if self.records:
            self.router_logp[self.rows, self.position, depth] = expert_logp(logits, chosen)
        gates = torch.zeros_like(logits).scatter(-1, chosen, logits.gather(-1, chosen).softmax(-1))
        gate, value = (layer.up @ x.t()).chunk(2)
        inner = (F.silu(gate) * value).view(logits.shape[1], -1, len(x)) * gates.t().unsqueeze(1)
        return (layer.down @ inner.flatten(0, 1)).t()


def _normed(x: Tensor, gain: Tensor) -> Tensor:
    """RMS norm of [heads, size, B] over its second axis."""
    return x * torch.rsqrt(x.square().mean(1, keepdim=True) + NORM_EPS) * gain


def _turned(x: Tensor, turns: Tensor) -> Tensor:
    """Rotate [heads, size, B] by `rotation` [2, size, 1]."""
    one, two = x.chunk(2, 1)
    return torch.addcmul(x * turns[0], torch.cat([two, one], 1), turns[1])


def _prepare(block: MoeBlock) -> _Layer:
    """The weights of a block in the layout of `_Layer`."""
    ups, downs = block.experts.up.weights, block.experts.down.weights
    return _Layer(
        qkv=block.qkv.weight,
        query_norm=block.query_norm.weight.unsqueeze(1) / math.sqrt(block.size),
        key_norm=block.key_norm.weight.unsqueeze(1),
        out=block.out.weight.t(),
        up=torch.cat([part for side in zip(*(up.chunk(2) for up in ups), strict=True) for part in side]),
        down=torch.cat(list(downs), 1),
    )
