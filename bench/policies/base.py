"""The interface of a policy: all that learner, samplers and evaluation ask of whatever a cell trains."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Protocol, Self

import torch
from torch import Tensor, nn

from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.policies.scores import TokenScores
from vcpo_bench.bench.policies.truncation import packed_size
from vcpo_bench.bench.trajectories import Responses, Rollout


class Decoding(Protocol):
    """Responses in progress, all at the same position, between two calls of `Policy.extend`.

    Attributes:
        caches: Keys and values of each layer, for a checkpoint; their fourth dimension is the position.
        position: Tokens of prompt and response that the caches hold or are about to.
    """

    caches: list[Tensor]
    position: int

    def reload(self) -> None:
        """Continue with the policy's current weights on the cache of the old ones."""


class Policy(nn.Module, ABC):
    """What a cell trains.

    Token ids and everything recorded live in main memory; a policy moves what it needs to its own device.

    Attributes:
        records_distributions: Whether rollouts carry the whole distribution of each token.
    """

    records_distributions: bool = False

    @abstractmethod
    def score(self, given: Responses) -> TokenScores:
        """Score responses, at temperature 1.

        Returns:
            The scores, rows in the order given; gradients reach the policy unless gradients are off.
        """

    @abstractmethod
    def score_rows(self, given: Responses) -> TokenScores:
        """Like `score` with a prompt per response; modules see one trajectory per row, as score norms need it."""

    def sample(self, draw: Draw) -> Rollout:
        """Draw whole responses, in main memory, rows in the order of `draw.uniforms`."""
        rollout = self.empty_rollout(draw)
        self.extend(rollout, self.decoding(draw.prompts, draw.rows, draw.length), draw, range(draw.length))
        return rollout

    @abstractmethod
    def decoding(self, prompts: Tensor, rows: int, length: int) -> Decoding:
        """Begin `rows` responses of at most `length` tokens to prompts int64 [P, Lp]; `extend` continues them."""

    @abstractmethod
    def extend(self, rollout: Rollout, decoding: Decoding, draw: Draw, positions: range) -> None:
        """Draw the tokens at consecutive positions of every response, in place.

        Args:
            rollout: [B, T] tensors with the tokens before; filled in place, with survivors of a truncation and routes
                where it has room for them.
            decoding: Either the one that drew the positions before, or a new one whose prompts include them.
            draw: What is drawn.
            positions: Which tokens of the responses to draw.
        """

    @abstractmethod
    def output_head(self) -> nn.Module:
        """The module that turns the final hidden states into logits."""

    def empty_rollout(self, draw: Draw) -> Rollout:
        """A rollout without tokens yet, and with room for all else that this policy records of them."""
        return Rollout.empty(draw.rows, draw.length, draw.eos, **self.recorded(draw))

    def recorded(self, draw: Draw) -> dict[str, Tensor]:
        """Room for the `Extras` that this policy records, by name: the survivors of truncated distributions."""
        size = len(next(self.output_head().parameters()))
        room = {"sampler_logp": torch.zeros(draw.rows, draw.length, size)} if self.records_distributions else {}
        if draw.truncation is not None and draw.truncation.replay:
            room["kept"] = torch.zeros(draw.rows, draw.length, packed_size(size), dtype=torch.uint8)
        return room

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def trainable(self) -> list[nn.Parameter]:
        """The parameters that training moves, in a fixed order."""
        return [parameter for parameter in self.parameters() if parameter.requires_grad]

    def replica(self) -> Self:
        """A frozen copy for reading. Weights that are not trained are shared: with adapters, only those are copied."""
        shared: dict[int, Any] = {id(p): p for p in self.parameters() if not p.requires_grad}
        return copy.deepcopy(self, shared).requires_grad_(False)

    def trained_state(self) -> dict[str, Tensor]:
        """What training has changed, for a checkpoint: name to tensor, each of its parameter's shape."""
        return {name: tensor.detach() for name, tensor in self.named_parameters() if tensor.requires_grad}

    def load_trained(self, state: Mapping[str, Tensor]) -> None:
        """Load what `trained_state` returned.

        Args:
            state: Name to tensor, each of its parameter's shape.

        Raises:
            KeyError: The names are not those of this policy.
        """
        own = dict(self.named_parameters())
        expected = {name for name, tensor in own.items() if tensor.requires_grad}
        if wrong := (expected - state.keys()) | (state.keys() - own.keys()):
            raise KeyError(f"not the weights of this policy: {sorted(wrong)[:3]}")
        with torch.no_grad():
            for name, tensor in state.items():
                own[name].copy_(tensor)
