"""Tasks in tokens: each brings its own small vocabulary, for the built-in tiny policy."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.bench.streams import uniforms
from vcpo_bench.bench.tasks.base import HELD_OUT, Task
from vcpo_bench.bench.tasks.catalog import TASKS, NamedTask
from vcpo_bench.bench.tasks.held_out import CANDIDATES, choose, draw_apart
from vcpo_bench.errors import UsageError
from vcpo_bench.lazy_torch import Tensor, torch


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
        """Prompts from the keyed stream of that name, none of which is held out."""
        length = self.prompt_length
        return self.apart(lambda k: self.prompts(uniforms(seed, purpose + f" {k}" * (k > 0), batch, count, length)))

    def apart(self, draw: Callable[[int], Tensor]) -> Tensor:
        """Prompts [B, Lp] of attempt 0; a row that is held out comes from the same row of a later attempt."""
        return draw_apart(self._held_out, draw)

    def held_out(self, count: int = HELD_OUT) -> Tensor:
        """See `Task.held_out`; a task with too few prompts repeats them, one with fewer than four holds out none."""
        fixed = self._held_out if len(self._held_out) else self._candidates()[:1]
        return fixed.repeat(-(-count // len(fixed)), 1)[:count]

    @cached_property
    def _held_out(self) -> Tensor:
        candidates = self._candidates()
        return choose(candidates, self.hard(candidates), HELD_OUT)

    def _candidates(self) -> Tensor:
        return self.prompts(uniforms(0, "held-out prompts", 0, CANDIDATES, self.prompt_length))

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
