"""An endless row of uniform numbers for one item: generators that reject need no bound on what they use."""

from vcpo_bench.bench.streams import uniforms


class Draws:
    """The keyed stream of one item, read from its beginning.

    Args:
        seed: seed of the run.
        purpose: name of the stream.
        batch: which batch.
        index: place in the batch.
    """

    def __init__(self, seed: int, purpose: str, batch: int, index: int) -> None:
        self._key = (seed, purpose, batch, index + 1)
        self._row: list[float] = []
        self._used = 0

    def below(self, bound: int) -> int:
        """The next whole number in 0 .. bound - 1, uniform."""
        if self._used == len(self._row):
            self._row = uniforms(*self._key, 2 * len(self._row) or 64)[-1].tolist()
        self._used += 1
        return int(self._row[self._used - 1] * bound)
