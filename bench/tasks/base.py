"""What a task is: prompts, a reward, demonstrations and words to read an episode by."""

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vcpo_bench.bench.streams import uniforms

HELD_OUT = 256


class Demonstrations(NamedTuple):
    """Right answers for supervised warm-up: prompts int64 [B, Lp], responses int64 [B, T], mask bool [B, T]."""

    prompts: Tensor
    responses: Tensor
    mask: Tensor


class Task(ABC):
    """A task as a trainer sees it, in tokens. Immutable; every random choice comes from keyed streams.

    Attributes:
        prompt_length: Tokens of every prompt, padding on the left included.
        max_response: Longest response, T, end token included.
        eos: The token that ends a response, or None if every response has T tokens.
    """

    prompt_length: int
    max_response: int
    eos: int | None = None

    @property
    @abstractmethod
    def canonical(self) -> str:
        """Name and the parameters that differ from their defaults, sorted: equal meaning, equal string."""

    @abstractmethod
    def stream(self, seed: int, purpose: str, batch: int, count: int) -> Tensor:
        """Prompts int64 [count, Lp], a pure function of the arguments; each purpose has a stream of its own."""

    def training_prompts(self, seed: int, batch: int, count: int) -> Tensor:
        """The prompts of one training batch: int64 [count, Lp], a pure function of the arguments."""
        return self.stream(seed, "prompts", batch, count)

    def held_out(self, count: int = HELD_OUT) -> Tensor:
        """Fixed prompts for evaluation, int64 [count, Lp]: equal in every run; training never reads their stream."""
        return self.stream(0, "held-out prompts", 0, count)

    @abstractmethod
    def reward(self, prompts: Tensor, responses: Tensor, mask: Tensor) -> Tensor:
        """Rewards float64 [B] of responses [B, T] to prompts [P, Lp].

        Args:
            prompts: int64, P dividing B: the responses of one prompt are consecutive.
            responses: int64.
            mask: bool [B, T], True at tokens the policy generated.
        """

    @abstractmethod
    def demonstrations(self, seed: int, batch: int, count: int) -> Demonstrations:
        """Prompts with right answers, a pure function of the arguments, from streams that training never reads."""

    @abstractmethod
    def render(self, prompt: Tensor, response: Tensor, mask: Tensor) -> str:
        """One episode as text: prompt [Lp], response [T], mask [T]."""


class EmbeddedTask(Task):
    """A task that brings its own small vocabulary, for the embedded policies.

    Attributes:
        name: What the user types, without parameters.
        summary: One line for `ls tasks`.
        parameters: Default of each parameter (all integers).
        vocabulary: The text of each token.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    parameters: ClassVar[dict[str, int]] = {}

    vocabulary: list[str]

    @property
    def vocab_size(self) -> int:
        """Number of tokens."""
        return len(self.vocabulary)

    @property
    def context(self) -> int:
        """Positions of the longest episode."""
        return self.prompt_length + self.max_response

    @property
    def canonical(self) -> str:
        """Name and the parameters that differ from their defaults, sorted: equal meaning, equal string."""
        changed = [
            f"{key}={self._value(key)}" for key in sorted(self.parameters) if self._value(key) != self.parameters[key]
        ]
        return f"{self.name}({','.join(changed)})" if changed else self.name

    def _value(self, parameter: str) -> int:
        """The value of a parameter; by convention an attribute of that name."""
        value: int = getattr(self, parameter)
        return value

    def stream(self, seed: int, purpose: str, batch: int, count: int) -> Tensor:
        """Prompts from the keyed stream of that name."""
        return self.prompts(uniforms(seed, purpose, batch, count, self.prompt_length))

    @abstractmethod
    def prompts(self, draws: NDArray[np.float64]) -> Tensor:
        """Prompts int64 [B, Lp] from uniforms [B, Lp]."""

    def render(self, prompt: Tensor, response: Tensor, mask: Tensor) -> str:
        """One episode as text: prompt [Lp], response [T], mask [T]."""
        words = [self.vocabulary[int(token)] for token in response[mask]]
        return f"{''.join(self.vocabulary[int(token)] for token in prompt)} {''.join(words)}"


def integers(draws: NDArray[np.float64], bound: int) -> Tensor:
    """Integers 0 .. bound - 1, int64, from uniforms of the same shape."""
    return torch.from_numpy((draws * bound).astype(np.int64))


def per_response(prompts: Tensor, rows: int) -> Tensor:
    """Prompts [P, Lp] repeated to one per response, [rows, Lp]."""
    return prompts if len(prompts) == rows else prompts.repeat_interleave(rows // len(prompts), 0)
