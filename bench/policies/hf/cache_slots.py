"""Key-value caches of responses that are at different places, in slots that can be filled again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from vcpo_bench.bench.policies.hf.policy import CausalPolicy


class Slots:
    """S sequences under evaluation, one new token each per step. Column j of a slot holds its own token j.

    Passed to the network as its cache: keys and values go to each slot's next column, and what stands behind it, left
    over from an earlier sequence, is hidden by the mask.

    Args:
        policy: What evaluates.
        slots: S.
        width: Most tokens of a sequence.

    Attributes:
        caches: Of each layer, keys and values [2, S, heads, width, size]; empty before the first `fill`.
        length: int64 [S], tokens each slot holds.
    """

    def __init__(self, policy: CausalPolicy, slots: int, width: int) -> None:
        self.policy, self.width = policy, width
        self.caches: list[Tensor] = []
        self.length = torch.zeros(slots, dtype=torch.int64, device=policy.device)
        self._slot = torch.arange(slots, device=policy.device)
        self._seen = 0  # columns in use

    def fill(self, slots: Tensor, prompts: Tensor) -> Tensor:
        """Begin new sequences.

        Args:
            slots: int64 [n].
            prompts: int64 [n, Lp], padded on the left; equal rows are evaluated once.

        Returns:
            Logits of the next token, [n, V].
        """
        distinct, place = torch.unique(prompts, dim=0, return_inverse=True)
        tokens, lengths = _pad_right(distinct, self.policy.real(distinct))
        hidden, cache = self.policy.prefill(tokens, lengths)
        if not self.caches:
            self.caches = [self._room(layer.keys) for layer in cache.layers]
        for kept, layer in zip(self.caches, cache.layers, strict=True):
            kept[0, slots, :, : tokens.shape[1]] = layer.keys[place].to(kept.dtype)
            kept[1, slots, :, : tokens.shape[1]] = layer.values[place].to(kept.dtype)
        self.length[slots] = lengths[place]
        self._seen = int(self.length.max())
        last = hidden.gather(1, (lengths - 1).view(-1, 1, 1).expand(-1, 1, hidden.shape[2])).squeeze(1)
        return self.policy.logits(last)[place]

    def step(self, tokens: Tensor) -> Tensor:
        """Feed one token per slot, int64 [S]; logits of the next one, [S, V]."""
        self.length.clamp_(max=self.width - 1)  # of slots whose sequence has ended
        self._seen = min(self._seen + 1, self.width)
        visible = torch.arange(self._seen, device=tokens.device) <= self.length.unsqueeze(1)
        hidden = self.policy.step(tokens, self.length, visible, self)
        self.length += 1
        return self.policy.logits(hidden)

    def place(self, length: Tensor, longest: int) -> None:
        """Say how many tokens each slot holds, int64 [S], and the most of any: after its caches were replaced."""
        self.length, self._seen = length, longest

    def keep(self, slots: Tensor) -> None:
        """Go on with some of the slots only, in the order given."""
        self.caches = [cache[:, slots] for cache in self.caches]
        self.length = self.length[slots]
        self._slot = self._slot[: len(slots)]
        self._seen = int(self.length.max())

    def update(self, keys: Tensor, values: Tensor, layer_idx: int, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """What the network calls: take keys and values [S, heads, 1, size], give all up to here."""
        cache = self.caches[layer_idx]
        cache[0, self._slot, :, self.length] = keys[:, :, 0].to(cache.dtype)
        cache[1, self._slot, :, self.length] = values[:, :, 0].to(cache.dtype)
        return cache[0, :, :, : self._seen], cache[1, :, :, : self._seen]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """What the network may ask of a cache; positions are given explicitly, so nothing depends on it."""
        return self._seen

    def _room(self, keys: Tensor) -> Tensor:
        """An empty cache for keys and values like `keys`, [n, heads, L, size].

        In what the policy computes in: where rotary embeddings leave keys in float32, attention reads them in bfloat16
        all the same, and would convert the whole cache for every token.
        """
        shape = (2, len(self.length), keys.shape[1], self.width, keys.shape[3])
        return keys.new_zeros(shape, dtype=self.policy.dtype)


def _pad_right(prompts: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
    """Prompts padded on the left as prompts padded on the right, [n, longest], and their lengths [n]."""
    lengths = real.sum(1)
    places = torch.arange(int(lengths.max()), device=prompts.device)
    source = (places + (prompts.shape[1] - lengths).unsqueeze(1)).clamp(max=prompts.shape[1] - 1)
    return prompts.gather(1, source), lengths
