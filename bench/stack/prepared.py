"""An engine that hands out responses which the stack has drawn for its cell in advance."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from torch import Tensor

from vcpo_bench.bench.trajectories import Rollout


class PreparedEngine:
    """An `Engine` of one cell of a stack: its responses come from the product of all cells."""

    def __init__(self) -> None:
        self._ready: deque[tuple[Tensor, Rollout]] = deque()

    def prepare(self, uniforms: Tensor, rollout: Rollout) -> None:
        """Hand this rollout out when the cell asks for responses drawn with these numbers."""
        self._ready.append((uniforms, rollout))

    def generate(self, prompts: Tensor, uniforms: Tensor, eos: int | None) -> Rollout:
        """See `Engine`.

        Raises:
            AssertionError: The cell asks for something else than was prepared.
        """
        noise, rollout = self._ready.popleft()
        if noise is not uniforms:
            raise AssertionError("a cell asked for other responses than its stack has drawn for it")
        return rollout

    def set_weights(self, weights: Iterable[tuple[str, Tensor]], version: int) -> None:
        """Nothing to do: the stack draws under the learner's own weights."""

    def health(self) -> str:
        """Nothing can go wrong with it."""
        return ""

    def close(self) -> None:
        """It holds nothing to release."""
