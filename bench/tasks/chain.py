"""chain: running sums modulo 10. One right answer, low entropy."""

from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vcpo_bench.bench.streams import uniforms
from vcpo_bench.bench.tasks.base import Demonstrations, EmbeddedTask, integers, per_response
from vcpo_bench.errors import UsageError


class Chain(EmbeddedTask):
    """The prompt is n digits; the response must be their n running sums modulo 10.

    Args:
        n: Number of digits, 1 to 64.

    Raises:
        UsageError: `n` is outside 1..64.
    """

    name = "chain"
    summary = "n digits; answer with their running sums modulo 10 (one right answer, low entropy)"
    parameters: ClassVar[dict[str, int]] = {"n": 12}

    def __init__(self, n: int = 12) -> None:
        if not 1 <= n <= 64:
            raise UsageError(f"chain(n={n}): n must be 1 to 64 digits")
        self.n = n
        self.vocabulary = [str(digit) for digit in range(10)]
        self.prompt_length = n
        self.max_response = n

    def prompts(self, draws: NDArray[np.float64]) -> Tensor:
        """Digits, uniform."""
        return integers(draws, 10)

    def reward(self, prompts: Tensor, responses: Tensor, mask: Tensor) -> Tensor:
        """1 if every running sum is right, else 0."""
        answer = per_response(prompts.cumsum(1) % 10, len(responses))
        return ((responses == answer) & mask).all(1).double()

    def demonstrations(self, seed: int, batch: int, count: int) -> Demonstrations:
        """Prompts of the task with the answer."""
        prompts = self.prompts(uniforms(seed, "demonstrations", batch, count, self.prompt_length))
        return Demonstrations(prompts, prompts.cumsum(1) % 10, torch.ones(count, self.n, dtype=torch.bool))

    def render(self, prompt: Tensor, response: Tensor, mask: Tensor) -> str:
        """`314 -> 348`, wrong digits in brackets: `314 -> 34[7]`."""
        answer = prompt.cumsum(0) % 10
        digits = [
            f"{int(digit)}" if digit == right else f"[{int(digit)}]"
            for digit, right in zip(response, answer, strict=True)
        ]
        return f"{''.join(str(int(digit)) for digit in prompt)} -> {''.join(digits)}"
