"""chain: running sums modulo 10. One right answer; three digits that the demonstrations hardly show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.bench.streams import uniforms
from vcpo_bench.bench.tasks.base import Demonstrations, per_response
from vcpo_bench.bench.tasks.token_task import TokenTask, integers
from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.naming.parameters import integer

_COMMON = 7
"""The digits 0 to 6 fill the demonstrations."""

_RARE_SHARE = 0.001
"""Share of 7, 8 and 9 among the digits of demonstrations; in every other prompt it is three in ten."""


@dataclass(frozen=True, kw_only=True)
class Chain(TokenTask):
    """The prompt is n digits; the response must be their n running sums modulo 10.

    Demonstrations hardly show the digits 7, 8 and 9, so that a policy warmed up on them has something to learn that
    it cannot do greedily. A prompt is hard if more than three in ten of its digits are such.

    Attributes:
        n: Number of digits.
    """

    name = "chain"
    summary = "n digits; answer with their running sums modulo 10 (one right answer, low entropy)"
    n: int = integer(12, minimum=1, maximum=64)

    @property
    def vocabulary(self) -> list[str]:
        """The ten digits."""
        return [str(digit) for digit in range(10)]

    @property
    def prompt_length(self) -> int:
        """The digits."""
        return self.n

    @property
    def max_response(self) -> int:
        """One sum per digit."""
        return self.n

    def prompts(self, draws: NDArray[np.float64]) -> Tensor:
        """Digits, uniform."""
        return integers(draws, 10)

    def hard(self, prompts: Tensor) -> Tensor:
        """More than three in ten of the digits are 7, 8 or 9, which demonstrations hardly show."""
        return 10 * (prompts >= _COMMON).sum(1) > 3 * self.n

    def reward(self, prompts: Tensor, responses: Tensor, mask: Tensor) -> Tensor:
        """1 if every running sum is right, else 0."""
        answer = per_response(prompts.cumsum(1) % 10, len(responses))
        return ((responses == answer) & mask).all(1).double()

    def demonstrations(self, seed: int, batch: int, count: int) -> Demonstrations:
        """Prompts with the answer; one digit in a thousand is a 7, 8 or 9."""
        prompts = self.apart(lambda k: self._mostly_common(seed, f"demonstrations {k}", batch, count))
        return Demonstrations(prompts, prompts.cumsum(1) % 10, torch.ones(count, self.n, dtype=torch.bool))

    def _mostly_common(self, seed: int, purpose: str, batch: int, count: int) -> Tensor:
        draws = uniforms(seed, purpose, batch, count, 2 * self.n)
        common, rare = integers(draws[:, : self.n], _COMMON), _COMMON + integers(draws[:, : self.n], 10 - _COMMON)
        return torch.where(torch.from_numpy(draws[:, self.n :] < _RARE_SHARE), rare, common)

    def render(self, prompt: Tensor, response: Tensor, mask: Tensor) -> str:
        """`314 -> 348`, wrong digits in brackets: `314 -> 34[7]`."""
        answer = prompt.cumsum(0) % 10
        digits = [
            f"{int(digit)}" if digit == right else f"[{int(digit)}]"
            for digit, right in zip(response, answer, strict=True)
        ]
        return f"{''.join(str(int(digit)) for digit in prompt)} -> {''.join(digits)}"
