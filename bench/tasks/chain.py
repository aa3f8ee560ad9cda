"""chain: running sums modulo 10. One right answer, low entropy."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vcpo_bench.bench.tasks.base import Demonstrations, per_response
from vcpo_bench.bench.tasks.token_task import TokenTask, integers
from vcpo_bench.naming.parameters import integer


@dataclass(frozen=True, kw_only=True)
class Chain(TokenTask):
    """The prompt is n digits; the response must be their n running sums modulo 10.

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

    def reward(self, prompts: Tensor, responses: Tensor, mask: Tensor) -> Tensor:
        """1 if every running sum is right, else 0."""
        answer = per_response(prompts.cumsum(1) % 10, len(responses))
        return ((responses == answer) & mask).all(1).double()

    def demonstrations(self, seed: int, batch: int, count: int) -> Demonstrations:
        """Prompts of the task with the answer."""
        prompts = self.stream(seed, "demonstrations", batch, count)
        return Demonstrations(prompts, prompts.cumsum(1) % 10, torch.ones(count, self.n, dtype=torch.bool))

    def render(self, prompt: Tensor, response: Tensor, mask: Tensor) -> str:
        """`314 -> 348`, wrong digits in brackets: `314 -> 34[7]`."""
        answer = prompt.cumsum(0) % 10
        digits = [
            f"{int(digit)}" if digit == right else f"[{int(digit)}]"
            for digit, right in zip(response, answer, strict=True)
        ]
        return f"{''.join(str(int(digit)) for digit in prompt)} -> {''.join(digits)}"
