"""Exact policy lag inside a synchronous trainer: the current policy samples now, and training on it waits k updates."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from vcpo_bench.errors import UsageError
from vcpo_bench.naming.errors import ExpressionError
from vcpo_bench.naming.grammar import read_item

Samples = dict[str, Any]
"""What a trainer sampled at once, on one rank: tensors of one row per response, and what goes with them."""


def read_lag(text: str) -> int:
    """The k of `fifo(k)`.

    Raises:
        UsageError: It is something else.
    """
    try:
        item = read_item(text)
    except ExpressionError as error:
        raise UsageError(f"lag: {error}") from None
    values = [value.text for key, value in item.arguments if key is None or key.text == "k"]
    if item.name.text != "fifo" or len(values) != 1 or len(item.arguments) != 1 or not values[0].isdecimal():
        raise UsageError(f"lag={text!r}: write fifo(k), for example fifo(8); k is the number of updates that data wait")
    return int(values[0])


class PromptStream:
    """The examples of one rank, in the order in which the trainer's own data loader would hand them over.

    A loader cannot be read ahead of the training loop, and a queue of lag k needs k batches more than the loop.

    Args:
        dataset: The training data.
        sampler: The indices of all ranks, every batch `repeats` times; read once per epoch.
        rows: Rows of one batch on one rank.
        rank: This rank.
        ranks: How many there are.
        repeats: How often the sampler repeats a batch.
    """

    def __init__(self, dataset: Any, sampler: Iterable[int], rows: int, rank: int, ranks: int, repeats: int) -> None:
        self._dataset, self._sampler = dataset, sampler
        self._rows, self._rank, self._ranks, self._repeats = rows, rank, ranks, repeats
        self._batches = self._endless()
        self._yielded = 0
        self.drawn = 0

    def skip(self, batches: int) -> None:
        """Go on behind the first `batches`; only at the start."""
        for _ in range(batches):
            next(self._batches)
        self.drawn = batches

    def draw(self) -> list[Any]:
        """The next batch of this rank."""
        batch = next(self._batches)
        self.drawn += 1
        return [self._dataset[index] for index in batch]

    def _endless(self) -> Iterator[Sequence[int]]:
        size = self._rows * self._ranks
        own = slice(self._rank * self._rows, (self._rank + 1) * self._rows)
        while True:
            before, indices = self._yielded, list[int]()
            for index in self._sampler:
                indices.append(index)
                if len(indices) == size * self._repeats:
                    self._yielded += 1
                    yield indices[own]
                    indices = []
            if self._yielded == before:
                raise UsageError(f"the training data have too few prompts for one generation batch of {size} rows")


class LagQueue:
    """Samples that wait for their update.

    Args:
        lag: Updates between sampling and training, from update `lag` on.
        sample: Samples a batch with the current weights.
    """

    def __init__(self, lag: int, sample: Callable[[], Samples]) -> None:
        self.lag, self._sample = lag, sample
        self.waiting: deque[Samples] = deque()

    def next(self) -> Samples:
        """What this update trains on; call it once per update."""
        while len(self.waiting) <= self.lag:
            self.waiting.append(self._sample())
        return self.waiting.popleft()
