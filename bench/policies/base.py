"""What a cell trains: the few things that learner, samplers and evaluation ask of a policy, whatever it is made of."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, Self

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from vcpo_bench.bench.policies.tiny.sampling import Rollout


class Scores(Protocol):
    """What a policy says about given responses, on its device. Tokens outside the mask are exactly 0 everywhere."""

    @property
    def logp(self) -> Tensor:
        """[B, T] log-probability of each response token, differentiable."""

    @property
    def mask(self) -> Tensor:
        """Bool [B, T], True where a token carries loss."""

    @property
    def entropy(self) -> Tensor:
        """[B, T] entropy of the distribution each token was drawn from, in nats; without gradient."""

    @property
    def sum_pi_sq(self) -> Tensor:
        """[B, T] sum over the vocabulary of squared probabilities; without gradient."""

    def differentiable_entropy(self) -> Tensor:
        """[B, T] the entropy again, with gradient: for entropy bonuses."""


class Decoding(Protocol):
    """Responses in progress, token by token in step, between two calls of `Model.extend`.

    Attributes:
        caches: Keys and values of each layer, for a checkpoint.
        position: Tokens of prompt and response that the caches hold or are about to.
    """

    caches: list[Tensor]
    position: int

    def reload(self) -> None:
        """Go on with the policy's present weights, on the cache of the old ones."""


class Model(nn.Module, ABC):
    """A policy. Token ids and everything recorded live in main memory; it moves what it needs to its own device."""

    @abstractmethod
    def score(self, prompts: Tensor, responses: Tensor, mask: Tensor) -> Scores:
        """Score responses, at temperature 1 and without truncation.

        Args:
            prompts: int64 [P, Lp], P dividing B: the responses of one prompt are consecutive.
            responses: int64 [B, T].
            mask: bool [B, T], True where the token carries loss.

        Returns:
            The scores, rows in the order given; gradients reach the policy unless gradients are off.
        """

    @abstractmethod
    def score_rows(self, prompts: Tensor, responses: Tensor, mask: Tensor) -> Scores:
        """Like `score` with prompts [B, Lp], every module seeing one trajectory per row: what score norms need."""

    @abstractmethod
    def sample(
        self, prompts: Tensor, uniforms: Tensor, eos: int | None = None, greedy: Tensor | None = None
    ) -> Rollout:
        """Draw one response per row of `uniforms`, at temperature 1 and without truncation.

        Args:
            prompts: int64 [P, Lp], P dividing B: the responses of one prompt are consecutive.
            uniforms: float64 [B, T] in [0, 1): token t of row i is the inverse of its cumulative distribution at
                [i, t].
            eos: Token that ends a response, or None if all run to T.
            greedy: bool [B], True for rows that take the most likely token instead.

        Returns:
            Responses of length T in main memory, rows in the order of `uniforms`.
        """

    @abstractmethod
    def decoding(self, prompts: Tensor, rows: int, length: int) -> Decoding:
        """Begin responses that `extend` goes on with: `rows` of them to prompts [P, Lp], of at most `length` tokens."""

    @abstractmethod
    def extend(
        self, rollout: Rollout, decoding: Decoding, prompts: Tensor, uniforms: Tensor, places: range, eos: int | None
    ) -> None:
        """Draw the tokens at consecutive `places` of every row, in place.

        The decoding is either the one that drew the places before, or a new one whose prompts include those responses.
        """

    @abstractmethod
    def output_head(self) -> nn.Module:
        """The module that turns the last hidden state into logits."""

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def trainable(self) -> list[nn.Parameter]:
        """The parameters that training moves, in a fixed order."""
        return [parameter for parameter in self.parameters() if parameter.requires_grad]

    def replica(self) -> Self:
        """A copy that nothing trains; it shares the frozen weights, so that of adapters only they are copied."""
        shared: dict[int, Any] = {id(p): p for p in self.parameters() if not p.requires_grad}
        return copy.deepcopy(self, shared).requires_grad_(False)

    def trained_state(self) -> dict[str, Tensor]:
        """What training has changed, by name, for a checkpoint."""
        return {name: tensor.detach() for name, tensor in self.named_parameters() if tensor.requires_grad}

    def load_trained(self, state: Mapping[str, Tensor]) -> None:
        """Take up what `trained_state` gave.

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
