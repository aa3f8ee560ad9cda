"""Token-by-token evaluation of the tiny network, laid out for speed on a CPU.

Inside a step the batch is the last (contiguous) dimension of queries, keys and values, so attention over one new token
is a few long vectorized operations instead of thousands of tiny matrix products.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from vcpo_bench.bench.policies.tiny.network import Block, Transformer


class _Layer(NamedTuple):
    """The weights of one block as its step uses them, the attention scale folded into the queries."""

    qkv: Tensor  # [3 * width, width]
    qkv_bias: Tensor  # [3 * width, 1]
    out: Tensor  # [width, width], input first; so the next two
    up: Tensor
    down: Tensor


class Decoder:
    """The state of decoding B responses: weights, key-value cache, position.

    When the weights change, make a new one, or `reload` them and continue on the cache of the old ones.

    Args:
        network: Its weights are read now.
        prompts: int64 [P, Lp], P dividing `rows`: the rows of one prompt are consecutive, and it is evaluated once.
        rows: B, the number of responses.
        length: Most tokens of a response.

    Attributes:
        first: Logits of the first token of each response, [V, B].
        caches: Keys and values, one tensor per layer.
        position: Positions filled so far; of the next token fed.
    """

    def __init__(self, network: Transformer, prompts: Tensor, rows: int, length: int) -> None:
        config, prompts = network.config, prompts.to(network.device)
        self.network, self.position = network, prompts.shape[1]
        self.blocks = network.layers()
        self.layers = [_prepare(block) for block in self.blocks]
        # [keys and values, heads, size, position, row]; the last token of a response is never an input
        shape = (2, config.heads, config.width // config.heads, self.position + length - 1, rows)
        self.caches = [torch.empty(shape, device=network.device) for _ in self.blocks]
        self.first = self._prefill(prompts, rows // prompts.shape[0])

    @property
    def room(self) -> int:
        """Steps for which the cache has room."""
        return self.caches[0].shape[-2] - self.position

    def keep(self, rows: Tensor) -> None:
        """Keep only these rows, int64 [rows]; later steps take and return them in that order."""
        past = self.position
        for index, cache in enumerate(self.caches):
            kept = cache.new_empty(*cache.shape[:-1], len(rows))
            kept[..., :past, :] = cache[..., :past, :].index_select(-1, rows)
            self.caches[index] = kept

    def _prefill(self, prompts: Tensor, group: int) -> Tensor:
        """Put keys and values of the prompts into the cache, repeated for each row of a group -> `first`."""
        x = self.network.embed(prompts, 0)
        for block, cache in zip(self.blocks, self.caches, strict=True):
            x, keys_values = block(x, first=self.position - 1 if block is self.blocks[-1] else 0)
            # [2, P, heads, 1, L, size] -> [2, heads, size, L, P * group]
            kept = keys_values.squeeze(3).permute(0, 2, 4, 3, 1).repeat_interleave(group, -1)
            cache[:, :, :, : self.position] = kept
        logits: Tensor = self.network.head(self.network.norm(x.squeeze(1)))
        return logits.t().repeat_interleave(group, -1)

    def reload(self) -> None:
        """Read the weights again and keep the cache, whose entries the old weights computed."""
        self.layers = [_prepare(block) for block in self.blocks]

    def step(self, token: Tensor) -> Tensor:
        """Feed one token per row, int64 [B] on the policy's device, and get the logits of the next one, [V, B]."""
        t = self.position
        network = self.network
        x = F.embedding(token, network.tokens.weight).add_(network.positions.weight[t])
        for block, layer, cache in zip(self.blocks, self.layers, self.caches, strict=True):
            width, rows = x.shape[1], x.shape[0]
            normal = F.layer_norm(x, (width,), block.norm1.weight, block.norm1.bias)
            projections = torch.addmm(layer.qkv_bias, layer.qkv, normal.t()).view(3, block.heads, -1, rows)
            cache[:, :, :, t] = projections[1:]
            query = projections[0].unsqueeze(2)
            weights = (cache[0, :, :, : t + 1] * query).sum(1).softmax(1)
            mixed = (cache[1, :, :, : t + 1] * weights.unsqueeze(1)).sum(2).view(width, rows)
            x.add_(block.out.bias).addmm_(mixed.t(), layer.out)
            normal = F.layer_norm(x, (width,), block.norm2.weight, block.norm2.bias)
            inner = F.gelu(torch.addmm(block.up.bias, normal, layer.up))
            x.add_(block.down.bias).addmm_(inner, layer.down)
        self.position += 1
        normal = F.layer_norm(x, x.shape[1:], network.norm.weight, network.norm.bias)
        return torch.addmm(network.head.bias.unsqueeze(1), network.head.weight, normal.t())


def _prepare(block: Block) -> _Layer:
    """The weights of a block in the layout of `_Layer`."""
    width = block.out.weight.shape[0]
    scale = torch.ones(3 * width, device=block.out.weight.device)
    scale[:width] = math.sqrt(block.heads / width)
    return _Layer(
        qkv=block.qkv.weight * scale.unsqueeze(1),
        qkv_bias=(block.qkv.bias * scale).unsqueeze(1),
        out=block.out.weight.t(),
        up=block.up.weight.t(),
        down=block.down.weight.t(),
    )
