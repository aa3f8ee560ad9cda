"""lookup: add up numbers of a hidden table, which only calls can read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.bench.streams import uniforms
from vcpo_bench.bench.tasks.environment import Reply, Turn
from vcpo_bench.bench.tasks.environment_task import NAME, EnvironmentTask, hidden
from vcpo_bench.bench.tasks.token_task import integers
from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.naming.parameters import integer

_KEYS = 8
_COMMON = 6
"""The keys a to f fill the demonstrations."""

_RARE_SHARE = 0.0005
"""Share of g and h among the keys of demonstrations; in every other prompt it is a quarter."""

_CALL, _ANSWER, _MARK, _ERROR = 18, 19, 20, 21
_LONGEST, _FOUND = 3, 2  # tokens of a turn: the sum so far, the call, the key; and of what is found


@dataclass(frozen=True, kw_only=True)
class Lookup(EnvironmentTask):
    """The prompt names a table and some keys; the answer is the sum modulo 10 of the digits under these keys.

    A turn that ends with `?k` looks up key k, and the environment inserts the key and its digit. A turn that ends with
    `s=` answers s. Demonstrations begin each turn with the sum so far. What stands in a table cannot be guessed:
    without its calls a policy is right one time in ten. A prompt is hard if it has a key that demonstrations hardly
    show.

    Attributes:
        keys: Number of keys; a correct episode has one turn more.
    """

    name = "lookup"
    summary = "look keys up in a hidden table by calls, answer with the sum modulo 10 (an environment, 4 turns)"
    keys: int = integer(3, minimum=1, maximum=8)

    @property
    def vocabulary(self) -> list[str]:
        """Digits, keys, call, answer, the mark that ends a prompt, and what the environment says to nonsense."""
        return [*"0123456789", *"abcdefgh", "?", "=", ":", "!"]

    @property
    def prompt_length(self) -> int:
        """Name of the table, keys, mark."""
        return NAME + self.keys + 1

    @property
    def turn_limit(self) -> int:
        """A turn per key, the answer, and one to spare."""
        return self.keys + 2

    @property
    def max_response(self) -> int:
        """A correct episode, and one failed turn."""
        return (self.keys + 1) * (_LONGEST + _FOUND) + 2

    def prompts(self, draws: NDArray[np.float64]) -> Tensor:
        """Digits and keys, uniform."""
        table, keys = integers(draws[:, :NAME], 10), 10 + integers(draws[:, NAME:-1], _KEYS)
        return torch.cat([table, keys, torch.full((len(draws), 1), _MARK)], dim=1)

    def hard(self, prompts: Tensor) -> Tensor:
        """A key is g or h, which demonstrations hardly show."""
        return (prompts[:, NAME:-1] >= 10 + _COMMON).any(1)

    def shown(self, seed: int, batch: int, count: int) -> Tensor:
        """Prompts in which one key in two thousand is g or h."""
        return self.apart(lambda k: self._mostly_common(seed, f"demonstrations {k}", batch, count))

    def _mostly_common(self, seed: int, purpose: str, batch: int, count: int) -> Tensor:
        draws = uniforms(seed, purpose, batch, count, self.prompt_length + self.keys)
        prompts, chances = self.prompts(draws[:, : self.prompt_length]), draws[:, self.prompt_length :]
        common = 10 + integers(draws[:, NAME : NAME + self.keys], _COMMON)
        rare = 10 + _COMMON + integers(draws[:, NAME : NAME + self.keys], _KEYS - _COMMON)
        prompts[:, NAME:-1] = torch.where(torch.from_numpy(chances < _RARE_SHARE), rare, common)
        return prompts

    def under(self, prompt: Sequence[int], key: int) -> int:
        """The digit under a key of the table that a prompt names."""
        return hidden(10, prompt[:NAME], [key])

    def total(self, prompt: Sequence[int]) -> int:
        """The right answer."""
        return sum(self.under(prompt, key) for key in prompt[NAME:-1]) % 10

    def over(self, said: Sequence[int]) -> bool:
        """After an answer, after the token that follows a call, and where a turn gets too long."""
        return said[-1] == _ANSWER or _CALL in said[-2:-1] or len(said) == _LONGEST

    def reply(self, prompt: Sequence[int], turns: Sequence[Turn], said: Sequence[int]) -> Reply:
        """The key and its digit, or `!` to what is no call."""
        if said[-1] == _ANSWER:
            return Reply("answer")
        if _CALL not in said[-2:-1]:
            return Reply("void", (_ERROR,))
        key = said[-1]
        return (
            Reply("call", (key, self.under(prompt, key))) if 10 <= key < 10 + _KEYS else Reply("malformed", (_ERROR,))
        )

    def right(self, prompt: Sequence[int], turns: Sequence[Turn]) -> bool:
        """The last turn is `s=` with the sum s."""
        said = turns[-1].said
        return said[-1] == _ANSWER and said[-2:-1] == (self.total(prompt),)

    def script(self, prompt: Sequence[int], draws: Sequence[float]) -> list[Turn]:
        """The keys in order, with the sum so far before each call."""
        turns, total = list[Turn](), 0
        for key in prompt[NAME:-1]:
            found = self.under(prompt, key)
            turns.append(Turn((total, _CALL, key), (key, found)))
            total = (total + found) % 10
        return [*turns, Turn((total, _ANSWER), ())]
