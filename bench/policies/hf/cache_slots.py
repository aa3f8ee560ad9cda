"""Key-value caches of responses at different positions, in slots that can be refilled."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from vcpo_bench.bench.policies.hf.network import CausalNetwork


class Slots:
    """S sequences under evaluation, one new token each per step. Column j of a slot holds token j of its sequence.

    The network receives this object as its cache: keys and values go to each slot's next column. The mask hides the
    columns after it, left over from an earlier sequence.

    Args:
        model: Evaluates the sequences.
        slots: S.
        width: Most tokens of a sequence.

    Attributes:
        caches: For each layer, keys and values [2, S, heads, width, size]; empty before the first `fill`.
        length: int64 [S], tokens in each slot.
    """

    def __init__(self, model: CausalNetwork, slots: int, width: int) -> None:
        self.model, self.width = model, width
        self.caches: list[Tensor] = []
        self.length = torch.zeros(slots, dtype=torch.int64, device=model.device)
        self._slot = torch.arange(slots, device=model.device)
        self._seen = 0  # columns in use

    def fill(self, slots: Tensor, prompts: Tensor) -> Tensor:
        """Begin new sequences.

        Args:
            slots: int64 [n].
            prompts: int64 [n, Lp], padded on the left; equal rows are evaluated once.

        Returns:
            Logits of the next token, [n, V].
        """
        distinct, source = torch.unique(prompts, dim=0, return_inverse=True)
        tokens, lengths = _pad_right(distinct, self.model.real(distinct))
        hidden, cache = self.model.prefill(tokens, lengths)
        if not self.caches:
            self.caches = [self._room(layer.keys) for layer in cache.layers]
        for kept, layer in zip(self.caches, cache.layers, strict=True):
            kept[0, slots, :, : tokens.shape[1]] = layer.keys[source].to(kept.dtype)
            kept[1, slots, :, : tokens.shape[1]] = layer.values[source].to(kept.dtype)
        self.length[slots] = lengths[source]
        self._seen = int(self.length.max())
        last = hidden.gather(1, (lengths - 1).view(-1, 1, 1).expand(-1, 1, hidden.shape[2])).squeeze(1)
        return self.model.logits(last)[source]

    def step(self, tokens: Tensor) -> Tensor:
        """Feed one token per slot, int64 [S]; returns logits of the next one, [S, V]."""
        self.length.clamp_(max=self.width - 1)  # slots whose sequence has ended
        self._seen = min(self._seen + 1, self.width)
        visible = torch.arange(self._seen, device=tokens.device) <= self.length.unsqueeze(1)
        hidden = self.model.step(tokens, self.length, visible, self)
        self.length += 1
        return self.model.logits(hidden)

    def set_length(self, length: Tensor, longest: int) -> None:
        """Set the number of tokens in each slot, int64 [S], and the largest of them, after replacing the caches."""
        self.length, self._seen = length, longest

    def keep(self, slots: Tensor) -> None:
        """Keep only these slots, int64 [n], in the order given."""
        for layer in range(len(self.caches)):  # one after another: all old ones beside all new ones would double them
            self.caches[layer] = self.caches[layer][:, slots]
        self.length = self.length[slots]
        self._slot = self._slot[: len(slots)]
        self._seen = int(self.length.max())

    def update(self, keys: Tensor, values: Tensor, layer_idx: int, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Called by the network: store keys and values [S, heads, 1, size], return all columns in use."""
        cache = self.caches[layer_idx]
        cache[0, self._slot, :, self.length] = keys[:, :, 0].to(cache.dtype)
        cache[1, self._slot, :, self.length] = values[:, :, 0].to(cache.dtype)
        return cache[0, :, :, : self._seen], cache[1, :, :, : self._seen]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Called by the network; positions are passed explicitly, so nothing depends on the answer."""
        return self._seen

    def _room(self, keys: Tensor) -> Tensor:
        """An empty cache for keys and values like `keys`, [n, heads, L, size].

        Its dtype is that of the computation. Rotary embeddings may leave keys in float32, but attention reads them in
        bfloat16 all the same, and would convert the whole cache for every token.
        """
        shape = (2, len(self.length), keys.shape[1], self.width, keys.shape[3])
        return keys.new_zeros(shape, dtype=self.model.dtype)


def _pad_right(prompts: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
    """Move the padding from the left to the right: prompts [n, longest], and their lengths [n]."""
    lengths = real.sum(1)
    columns = torch.arange(int(lengths.max()), device=prompts.device)
    source = (columns + (prompts.shape[1] - lengths).unsqueeze(1)).clamp(max=prompts.shape[1] - 1)
    return prompts.gather(1, source), lengths
