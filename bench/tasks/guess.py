"""guess: find a hidden number from what the environment says to every guess."""

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

_RARE_SHARE = 0.05
"""Share of demonstrations in which the hidden number may be in the upper half."""


@dataclass(frozen=True, kw_only=True)
class Guess(EnvironmentTask):
    """The prompt names a hidden number; every turn is one guess, and the environment says `<` or `>` to a wrong one.

    The number of guesses is just enough for bisection. Demonstrations guess at random among the numbers that are still
    possible, and hardly show that the upper half can be the hidden one: such prompts are hard.

    Attributes:
        guesses: Most guesses; the hidden number is one of 2^guesses - 1.
    """

    name = "guess"
    summary = "find a hidden number from < and > by bisection (an environment, at most 4 turns)"
    guesses: int = integer(4, minimum=2, maximum=5)

    @property
    def numbers(self) -> int:
        """How many numbers there are."""
        return (1 << self.guesses) - 1

    @property
    def vocabulary(self) -> list[str]:
        """The numbers, what is said of the hidden one, the mark that ends a prompt, and what is said to nonsense."""
        return [*"0123456789abcdefghijklmnopqrstu"[: max(self.numbers, 10)], "<", ">", ":", "!"]

    @property
    def prompt_length(self) -> int:
        """The digits that name the number, and the mark."""
        return NAME + 1

    @property
    def turn_limit(self) -> int:
        """The guesses."""
        return self.guesses

    @property
    def max_response(self) -> int:
        """The guesses, with a reply to each but the last."""
        return 2 * self.guesses - 1

    @property
    def _signs(self) -> range:
        """The tokens of `<`, `>`, `:` and `!`."""
        return range(max(self.numbers, 10), max(self.numbers, 10) + 4)

    def prompts(self, draws: NDArray[np.float64]) -> Tensor:
        """Digits, uniform."""
        return torch.cat([integers(draws[:, :-1], 10), torch.full((len(draws), 1), self._signs[2])], dim=1)

    def hard(self, prompts: Tensor) -> Tensor:
        """The hidden number is in the upper half, which demonstrations hardly show."""
        return torch.tensor([2 * self.secret(prompt) >= self.numbers for prompt in prompts.tolist()])

    def shown(self, seed: int, batch: int, count: int) -> Tensor:
        """Prompts of which one in forty is hard: of a hard one mostly the first easy one of later attempts."""
        rare = torch.from_numpy(uniforms(seed, "rare demonstrations", batch, count, 1)[:, 0] < _RARE_SHARE)
        prompts = self.stream(seed, "demonstrations", batch, count)
        attempt = 0
        while bool((unwanted := self.hard(prompts) & ~rare).any()):
            attempt += 1
            again = self.stream(seed, f"demonstrations, attempt {attempt}", batch, count)
            prompts = torch.where(unwanted[:, None], again, prompts)
        return prompts

    def secret(self, prompt: Sequence[int]) -> int:
        """The hidden number."""
        return hidden(self.numbers, prompt[:NAME])

    def over(self, said: Sequence[int]) -> bool:
        """Always: a turn is one token."""
        return True

    def reply(self, prompt: Sequence[int], turns: Sequence[Turn], said: Sequence[int]) -> Reply:
        """`<`: the hidden number is smaller; `>`: it is larger; `!`: that was no number. A hit ends the episode."""
        guess, secret = said[0], self.secret(prompt)
        if guess >= self.numbers:
            return Reply("malformed", (self._signs[3],))
        return Reply("answer") if guess == secret else Reply("call", (self._signs[int(secret > guess)],))

    def right(self, prompt: Sequence[int], turns: Sequence[Turn]) -> bool:
        """The last guess hits."""
        return turns[-1].said == (self.secret(prompt),)

    def script(self, prompt: Sequence[int], draws: Sequence[float]) -> list[Turn]:
        """Random guesses among what is still possible; bisection where none of three attempts finds the number."""
        attempts = [draws[start : start + self.guesses] for start in range(0, 3 * self.guesses, self.guesses)]
        found = (self._search(prompt, attempt) for attempt in [*attempts, [0.5] * self.guesses])
        return next(turns for turns in found if self.right(prompt, turns))

    def _search(self, prompt: Sequence[int], draws: Sequence[float]) -> list[Turn]:
        """Guesses at these places between the smallest (0) and the largest (1) number still possible."""
        low, high, turns = 0, self.numbers, list[Turn]()
        for draw in draws:
            said = (low + int(draw * (high - low)),)
            turns.append(Turn(said, self.reply(prompt, turns, said).observed))
            if not turns[-1].heard:
                break
            low, high = (low, said[0]) if turns[-1].heard[0] == self._signs[0] else (said[0] + 1, high)
        return [*turns[:-1], Turn(turns[-1].said, ())]
