"""What a trainer sees of a task: prompts, a reward, demonstrations, and a readable form of an episode."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

from vcpo_bench.bench.tasks.environment import Environment
from vcpo_bench.lazy_torch import Tensor

HELD_OUT = 256


class Demonstrations(NamedTuple):
    """Correct answers for a supervised warm start.

    Attributes:
        prompts: int64 [B, Lp].
        responses: int64 [B, T].
        mask: bool [B, T], True at the tokens of a response.
    """

    prompts: Tensor
    responses: Tensor
    mask: Tensor


class Task(ABC):
    """A task in tokens. Immutable; every random choice comes from keyed streams.

    Attributes:
        eos: The token that ends a response, or None if every response has T tokens.
    """

    eos: int | None = None

    @property
    @abstractmethod
    def prompt_length(self) -> int:
        """Tokens of every prompt, Lp, left padding included."""

    @property
    @abstractmethod
    def max_response(self) -> int:
        """Longest response in tokens, T, end token included."""

    @property
    @abstractmethod
    def canonical(self) -> str:
        """Name and the parameters that differ from their defaults, sorted: equal meaning, equal string."""

    @property
    def environment(self) -> Environment | None:
        """What answers the policy between its turns; None: the policy writes the whole response in one turn."""
        return None

    @abstractmethod
    def stream(self, seed: int, purpose: str, batch: int, count: int) -> Tensor:
        """Prompts int64 [count, Lp], a pure function of the arguments; each purpose has a stream of its own."""

    def training_prompts(self, seed: int, batch: int, count: int) -> Tensor:
        """The prompts of one training batch: int64 [count, Lp], a pure function of the arguments."""
        return self.stream(seed, "prompts", batch, count)

    @abstractmethod
    def held_out(self, count: int = HELD_OUT) -> Tensor:
        """Fixed prompts for evaluation, int64 [count, Lp]: equal in every run, and never trained on."""

    def hard(self, prompts: Tensor) -> Tensor | None:
        """Which prompts [P, Lp] are hard, bool [P], by a rule that looks at nothing but the prompt; None: no rule."""
        return None

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
        """Prompts with correct answers, a pure function of the arguments, from streams that training never reads."""

    @abstractmethod
    def render(self, prompt: Tensor, response: Tensor, mask: Tensor) -> str:
        """One episode as text.

        Args:
            prompt: int64 [Lp].
            response: int64 [T].
            mask: bool [T].
        """


def per_response(prompts: Tensor, rows: int) -> Tensor:
    """Prompts [P, Lp] repeated to one per response, [rows, Lp]."""
    return prompts if len(prompts) == rows else prompts.repeat_interleave(rows // len(prompts), 0)
