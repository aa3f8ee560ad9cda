"""Sampled trajectories: what a behavior policy produced, with everything the learner needs to weigh it."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Trajectories:
    """One batch of P prompts with G responses each, of at most T tokens.

    Attributes:
        index: Number of the batch; with the seed it fixes prompts and sampling noise.
        prompts: ``[P, Lp]`` int64 token ids.
        responses: ``[P, G, T]`` int64 token ids.
        behavior_logp: ``[P, G, T]`` float32, log-probability of each token when it was sampled.
        mask: ``[P, G, T]`` bool, True where the policy generated the token.
        reward: ``[P, G]`` float64, one scalar per trajectory.
        version: ``[P, G, T]`` int64, optimizer updates seen by the weights that sampled each token.
    """

    index: int
    prompts: Tensor
    responses: Tensor
    behavior_logp: Tensor
    mask: Tensor
    reward: Tensor
    version: Tensor

    def tensors(self) -> dict[str, Tensor]:
        """The tensors by field name, for a checkpoint."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "index"}

    def split(self, parts: int) -> list[Trajectories]:
        """Cut along prompts into at most ``parts`` pieces of nearly equal size; groups stay whole."""
        pieces = min(parts, self.prompts.shape[0])
        cut = {name: tensor.tensor_split(pieces) for name, tensor in self.tensors().items()}
        return [Trajectories(self.index, **{name: chunks[i] for name, chunks in cut.items()}) for i in range(pieces)]

    def flat_prompts(self) -> Tensor:
        """``[P*G, Lp]``: the prompt of every trajectory."""
        return self.prompts.repeat_interleave(self.responses.shape[1], dim=0)

    def oldest(self) -> Tensor:
        """``[P, G]`` version of the oldest generated token of each trajectory."""
        return torch.where(self.mask, self.version, torch.iinfo(torch.int64).max).amin(-1)
