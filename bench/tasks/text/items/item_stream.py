"""Endless random numbers for one item, so that a generator which rejects draws needs no bound on how many it uses."""

from hashlib import blake2b

import numpy as np

_BLOCK = 32


class ItemStream:
    """The keyed stream of one item, a pure function of (seed, purpose, batch, index) like those of `bench.streams`.

    Philox-4x64-10: the key is a hash of seed and purpose; the counter holds position, index, batch and a 1, where
    the rows of `bench.streams.uniforms` have a 0.
    """

    def __init__(self, seed: int, purpose: str, batch: int, index: int) -> None:
        key = np.frombuffer(blake2b(f"{seed}/{purpose}".encode(), digest_size=16).digest(), dtype="<u8")
        self._bits = np.random.Philox(key=key, counter=np.array([0, index, batch, 1], dtype=np.uint64))
        self._words: list[int] = []

    def below(self, bound: int) -> int:
        """The next whole number in 0 .. bound - 1, uniform."""
        if not self._words:
            self._words = (self._bits.random_raw(_BLOCK) >> np.uint64(11)).tolist()[::-1]
        return self._words.pop() * bound >> 53
