"""The forward pass of E tiny networks at once; `policies.tiny.network` with a leading axis of cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from vcpo_bench.bench.policies.tiny.network import PolicyConfig, attend, visible
from vcpo_bench.bench.stack.layers import embedding, layer_norm, linear


class Taped(NamedTuple):
    """One layer in a forward pass.

    Attributes:
        name: Its name in a policy.
        inputs: `[E, B, L, ...]` what it received.
        output: `[E, B, L, ...]` what it returned, in the graph.
    """

    name: str
    inputs: Tensor
    output: Tensor


class StackedNetwork:
    """E networks of one shape.

    Args:
        config: Their shape.
        weights: Name of a parameter to its values in all of them, `[E, *shape]`.
        tape: Receives the name, input and output of every layer that whole sequences pass; None: nothing is noted.
    """

    def __init__(self, config: PolicyConfig, weights: Mapping[str, Tensor], tape: list[Taped] | None = None) -> None:
        self.config, self.weights, self.tape = config, weights, tape

    @property
    def cells(self) -> int:
        """E."""
        return len(self.weights["head.weight"])

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.weights["head.weight"].device

    def linear(self, name: str, x: Tensor) -> Tensor:
        """The linear layer of that name: `[E, ..., in]` to `[E, ..., out]`."""
        return self._noted(name, x, linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]))

    def norm(self, name: str, x: Tensor) -> Tensor:
        """The layer norm of that name."""
        return self._noted(name, x, layer_norm(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]))

    def _noted(self, name: str, x: Tensor, output: Tensor) -> Tensor:
        if self.tape is not None:
            self.tape.append(Taped(name, x.detach(), output if output.requires_grad else output.requires_grad_()))
        return output

    def embed(self, tokens: Tensor, first: int) -> Tensor:
        """Embeddings `[E, B, L, width]` of tokens `[E, B, L]` at positions first, first + 1, ..."""
        positions = torch.arange(first, first + tokens.shape[-1], device=tokens.device).expand(tokens.shape)
        own = self._noted("tokens", tokens, embedding(tokens, self.weights["tokens.weight"]))
        return own + self._noted("positions", positions, embedding(positions, self.weights["positions.weight"]))

    def block(self, layer: int, x: Tensor, prefix: Tensor | None = None, first: int = 0) -> tuple[Tensor, Tensor]:
        """One layer; see `policies.tiny.network.Block.forward`, whose prompts are those of all cells here.

        Args:
            layer: Its number.
            x: `[E, B, L, width]`.
            prefix: Keys and values `[2, E * P, heads, 1, Lp, size]` that the rows of `x` also see.
            first: First position whose output is wanted.

        Returns:
            `[E, B, L - first, width]`, and keys and values `[2, E * P, heads, B / P, L, size]`.
        """
        E, B, L, width = x.shape
        name, heads = f"blocks.{layer}", self.config.heads
        groups = E * B if prefix is None else prefix.shape[1]
        split = self.linear(f"{name}.qkv", self.norm(f"{name}.norm1", x))
        split = split.view(groups, E * B // groups, L, 3, heads, width // heads).permute(3, 0, 4, 1, 2, 5)
        query, own = torch.split(split, [1, 2])
        query = query[0, ..., first:, :] if first else query.squeeze(0)
        mixed = attend(query, visible(prefix, own), L if prefix is None else prefix.shape[-2] + L)
        mixed = mixed.permute(0, 2, 3, 1, 4).reshape(E, B, L - first, width)
        x = (x[:, :, first:] if first else x) + self.linear(f"{name}.out", mixed)
        inner = F.gelu(self.linear(f"{name}.up", self.norm(f"{name}.norm2", x)))
        return x + self.linear(f"{name}.down", inner), own

    def keys_values(self, layer: int, x: Tensor) -> Tensor:
        """The keys and values only, `[2, E * P, heads, 1, L, size]`, of `[E, P, L, width]`."""
        E, P, L, width = x.shape
        name, heads = f"blocks.{layer}", self.config.heads
        weight, bias = self.weights[f"{name}.qkv.weight"][:, width:], self.weights[f"{name}.qkv.bias"][:, width:]
        split = linear(self.norm(f"{name}.norm1", x), weight, bias).view(E * P, 1, L, 2, heads, width // heads)
        return split.permute(3, 0, 4, 1, 2, 5)

    def hidden(self, tokens: Tensor, first: int = 0) -> Tensor:
        """The head's input `[E, B, L - first, width]` for whole sequences `[E, B, L]`."""
        x, last = self.embed(tokens, 0), self.config.layers - 1
        for layer in range(last):
            x, _ = self.block(layer, x)
        x, _ = self.block(last, x, first=first)
        return self.norm("norm", x)

    def hidden_after(self, prompts: Tensor, tokens: Tensor) -> Tensor:
        """The head's input `[E, B, T, width]` for tokens `[E, B, T]` after prompts `[E, P, Lp]`."""
        past, x = self.embed(prompts, 0), self.embed(tokens, prompts.shape[-1])
        last = self.config.layers - 1
        for layer in range(last):
            past, keys_values = self.block(layer, past)
            x, _ = self.block(layer, x, keys_values)
        x, _ = self.block(last, x, self.keys_values(last, past))
        return self.norm("norm", x)
