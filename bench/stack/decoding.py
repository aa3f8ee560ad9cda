"""Token-by-token evaluation of E tiny networks with one key-value cache; `policies.tiny.decoding` with an axis more."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from vcpo_bench.bench.stack.layers import embedding, layer_norm
from vcpo_bench.bench.stack.network import StackedNetwork


class StackedDecoder:
    """The state of decoding B responses in each of E cells.

    Args:
        network: Its weights are read now.
        prompts: int64 `[E, P, Lp]`, P dividing `rows`: the rows of one prompt are consecutive.
        rows: B, the number of responses of a cell.
        length: Most tokens of a response.

    Attributes:
        first: Logits of the first token of each response, `[E, V, B]`.
        position: Tokens of prompt and response that the cache holds or is about to.
    """

    def __init__(self, network: StackedNetwork, prompts: Tensor, rows: int, length: int) -> None:
        config, self.network, self.position = network.config, network, prompts.shape[-1]
        self.queries = [_scaled_queries(network, layer) for layer in range(config.layers)]
        # [cell, keys and values, heads, size, position, row]
        size = config.width // config.heads
        shape = (network.cells, 2, config.heads, size, self.position + length - 1, rows)
        self.caches = [torch.empty(shape, device=network.device) for _ in range(config.layers)]
        self.first = self._prefill(prompts.to(network.device), rows // prompts.shape[1])

    def _prefill(self, prompts: Tensor, group: int) -> Tensor:
        network, (E, P) = self.network, prompts.shape[:2]
        x = network.embed(prompts, 0)
        for layer, cache in enumerate(self.caches):
            first = self.position - 1 if layer == len(self.caches) - 1 else 0
            x, keys_values = network.block(layer, x, first=first)
            # [2, E * P, heads, 1, L, size] -> [E, 2, heads, size, L, P * group]
            kept = keys_values.view(2, E, P, *keys_values.shape[2:]).squeeze(4).permute(1, 0, 3, 5, 4, 2)
            cache[..., : self.position, :] = kept.repeat_interleave(group, -1)
        logits = network.linear("head", network.norm("norm", x.squeeze(2)))
        return logits.transpose(1, 2).repeat_interleave(group, -1)

    def step(self, token: Tensor) -> Tensor:
        """Feed one token per row, int64 `[E, B]`, and get the logits of the next one, `[E, V, B]`."""
        own, t = self.network.weights, self.position
        x = embedding(token, own["tokens.weight"]).add_(own["positions.weight"][:, t].unsqueeze(1))
        for layer in range(len(self.caches)):
            self._layer(layer, x)
        self.position += 1
        normal = layer_norm(x, own["norm.weight"], own["norm.bias"]).transpose(1, 2)
        return torch.baddbmm(own["head.bias"].unsqueeze(2), own["head.weight"], normal)

    def _layer(self, layer: int, x: Tensor) -> None:
        """Run one layer on the residual stream `[E, B, width]`, in place."""
        own, name, cache, t = self.network.weights, f"blocks.{layer}", self.caches[layer], self.position
        E, rows, width = x.shape
        heads = self.network.config.heads
        weight, bias = self.queries[layer]
        normal = self.network.norm(f"{name}.norm1", x).transpose(1, 2)
        projections = torch.baddbmm(bias, weight, normal).view(E, 3, heads, width // heads, rows)
        cache[..., t, :] = projections[:, 1:]
        query = projections[:, 0].unsqueeze(3)
        weights = (cache[:, 0, :, :, : t + 1] * query).sum(2).softmax(2)
        mixed = (cache[:, 1, :, :, : t + 1] * weights.unsqueeze(2)).sum(3).view(E, width, rows)
        x.add_(own[f"{name}.out.bias"].unsqueeze(1))
        x.baddbmm_(mixed.transpose(1, 2), own[f"{name}.out.weight"].transpose(1, 2))
        normal = self.network.norm(f"{name}.norm2", x)
        up = own[f"{name}.up.weight"].transpose(1, 2)
        inner = F.gelu(torch.baddbmm(own[f"{name}.up.bias"].unsqueeze(1), normal, up))
        x.add_(own[f"{name}.down.bias"].unsqueeze(1))
        x.baddbmm_(inner, own[f"{name}.down.weight"].transpose(1, 2))


def _scaled_queries(network: StackedNetwork, layer: int) -> tuple[Tensor, Tensor]:
    """Weight `[E, 3 * width, width]` and bias `[E, 3 * width, 1]` with the attention scale folded into the queries."""
    width, heads = network.config.width, network.config.heads
    scale = torch.ones(3 * width, device=network.device)
    scale[:width] = math.sqrt(heads / width)
    weight, bias = (network.weights[f"blocks.{layer}.qkv.{name}"] for name in ("weight", "bias"))
    return weight * scale.unsqueeze(1), (bias * scale).unsqueeze(2)
