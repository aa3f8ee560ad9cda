"""Tasks in tokens: each brings its own small vocabulary, for the built-in tiny policy."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vcpo_bench.bench.streams import uniforms
from vcpo_bench.bench.tasks.base import Task
from vcpo_bench.bench.tasks.catalog import TASKS, NamedTask
from vcpo_bench.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class TokenTask(NamedTask, Task):
    """A task with a vocabulary of its own. A subclass is a frozen dataclass whose fields are its parameters."""

    @property
    @abstractmethod
    def vocabulary(self) -> list[str]:
        """The text of each token."""

    @property
    def vocab_size(self) -> int:
        """Number of tokens."""
        return len(self.vocabulary)

    @property
    def context(self) -> int:
        """Positions of the longest episode, prompt and response."""
        return self.prompt_length + self.max_response

    def stream(self, seed: int, purpose: str, batch: int, count: int) -> Tensor:
        """Prompts from the keyed stream of that name."""
        return self.prompts(uniforms(seed, purpose, batch, count, self.prompt_length))

    @abstractmethod
    def prompts(self, draws: NDArray[np.float64]) -> Tensor:
        """Prompts int64 [B, Lp] from uniform numbers [B, Lp] in [0, 1)."""

    def render(self, prompt: Tensor, response: Tensor, mask: Tensor) -> str:
        """One episode as text: prompt [Lp], response [T], mask [T]."""
        words = [self.vocabulary[int(token)] for token in response[mask]]
        return f"{''.join(self.vocabulary[int(token)] for token in prompt)} {''.join(words)}"


def token_task(expression: str) -> TokenTask:
    """The task in tokens that an expression names: `chain`, `chain(8)` and `chain(n=8)`.

    Raises:
        UsageError: The expression cannot be read, or names a text task.
    """
    if TASKS.class_of(expression).needs_language_model:
        raise UsageError(f"{expression!r} is a text task and needs a language model: add --model NAME_OR_PATH")
    task = TASKS.parse(expression)
    assert isinstance(task, TokenTask)
    return task


def integers(draws: NDArray[np.float64], bound: int) -> Tensor:
    """Integers 0 .. bound - 1, int64, from uniform numbers of the same shape."""
    return torch.from_numpy((draws * bound).astype(np.int64))
