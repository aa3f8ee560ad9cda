"""A policy's weights under the names by which its checkpoint is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from vcpo_bench.bench.policies.hf.policy import CausalPolicy

_PREFIX = "network."


class WeightNames:
    """Renames what a policy publishes: checkpoint names, and one entry for each name of a shared weight."""

    def __init__(self, policy: CausalPolicy) -> None:
        every = dict(policy.named_parameters(remove_duplicate=False))
        kept = {id(tensor): name for name, tensor in policy.named_parameters()}
        self._names: dict[str, list[str]] = {}
        for name, tensor in every.items():
            self._names.setdefault(kept[id(tensor)], []).append(name.removeprefix(_PREFIX))
        self.tied = any(len(names) > 1 for names in self._names.values())

    def checkpoint(self, weights: Iterable[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
        """The weights a checkpoint with an untied head would hold."""
        for name, tensor in weights:
            for each in self._names[name]:
                yield each, tensor.detach()
