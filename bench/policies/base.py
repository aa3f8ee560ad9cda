"""The interface of a policy: all that learner, samplers and evaluation ask of whatever a cell trains."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Protocol, Self

import torch
from torch import Tensor, nn

from vcpo_bench.bench.policies.scores import TokenScores
from vcpo_bench.bench.policies.truncation import Truncation, recorded_bytes
from vcpo_bench.bench.trajectories import Rollout


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
    """

    @abstractmethod
    def score(self, prompts: Tensor, responses: Tensor, mask: Tensor, kept: Tensor | None = None) -> TokenScores:
        """Score responses, at temperature 1.

        Args:
            prompts: int64 [P, Lp], P dividing B: the responses of one prompt are consecutive.
            responses: int64 [B, T].
            mask: bool [B, T], True where the token carries loss.
            kept: uint8 [B, T, ceil(V / 8)], tokens over which each distribution is normalized (mask replay); None: all.

        Returns:
            The scores, rows in the order given; gradients reach the policy unless gradients are off.
        """

    @abstractmethod
    def score_rows(self, prompts: Tensor, responses: Tensor, mask: Tensor, kept: Tensor | None = None) -> TokenScores:
        """Like `score` with prompts [B, Lp], every module seeing one trajectory per row: what score norms need."""

    @abstractmethod
    def sample(
        self,
        prompts: Tensor,
        uniforms: Tensor,
        eos: int | None = None,
        greedy: Tensor | None = None,
        truncation: Truncation | None = None,
    ) -> Rollout:
        """Draw one response per row of `uniforms`, at temperature 1.

        Args:
            prompts: int64 [P, Lp], P dividing B: the responses of one prompt are consecutive.
            uniforms: float64 [B, T] in [0, 1): token t of row i is the inverse of its cumulative distribution at
                [i, t].
            eos: Token that ends a response, or None if all run to T.
            greedy: bool [B], True for rows that take the most likely token instead.
            truncation: How distributions are cut before drawing; None: as the policy does by itself, usually not.

        Returns:
            Responses of length T in main memory, rows in the order of `uniforms`.
        """

    @abstractmethod
    def decoding(self, prompts: Tensor, rows: int, length: int) -> Decoding:
        """Begin `rows` responses of at most `length` tokens to prompts int64 [P, Lp]; `extend` continues them."""

    @abstractmethod
    def extend(
        self,
        rollout: Rollout,
        decoding: Decoding,
        prompts: Tensor,
        uniforms: Tensor,
        positions: range,
        eos: int | None,
        greedy: Tensor | None = None,
        truncation: Truncation | None = None,
    ) -> None:
        """Draw the tokens at consecutive positions of every response, in place.

        Args:
            rollout: [B, T] tensors with the tokens before; filled in place.
            decoding: Either the one that drew the positions before, or a new one whose prompts include them.
            prompts: int64 [P, Lp].
            uniforms: float64 [B, T], see `sample`.
            positions: Which tokens of the responses to draw.
            eos: Token that ends a response, or None.
            greedy: bool [B], True for rows that take the most likely token instead.
            truncation: As for `sample`; survivors are recorded where the rollout has room for them.
        """

    @abstractmethod
    def output_head(self) -> nn.Module:
        """The module that turns the final hidden states into logits."""

    def empty_routes(self, rows: int, positions: int) -> Tensor | None:
        """Room for the routes of so many responses and positions; None where nothing is routed (`policies.routed`)."""
        return None

    def empty_router_logp(self, rows: int, length: int) -> Tensor | None:
        """Room for what the routers say of so many responses and tokens; None where it is not recorded."""
        return None

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def kept_bytes(self, truncation: Truncation | None) -> int:
        """Bytes per token that a rollout needs to record survivors; 0: they are not recorded."""
        if truncation is None:
            return 0
        return recorded_bytes(truncation, len(next(self.output_head().parameters())))

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
