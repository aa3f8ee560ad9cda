"""Keyed random streams: every random number of a run is a pure function of what it is for.

Nothing here keeps state, so no method, regime, worker count or interruption can change the data another run sees:
prompts and sampling noise are common random numbers across methods and lags, and comparisons are paired.
"""

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

_CHUNK = 16  # draws of one trajectory that lie side by side in counter space; part of the definition of every stream


def uniforms(seed: int, purpose: str, batch: int, count: int, length: int) -> NDArray[np.float64]:
    """Uniform numbers in [0, 1) that depend on (seed, purpose, batch, trajectory, position) and on nothing else.

    Row i is the same whatever `count`, and a longer row begins with the shorter one. (Philox-4x64-10 of Salmon et al.
    2011: the key is a hash of seed and purpose, the counter holds trajectory, position and batch.)

    Args:
        seed: Seed of the run, non-negative.
        purpose: Name of the use, e.g. `"prompts"` or `"sampling"`; different names are independent streams.
        batch: Which batch of the run, non-negative.
        count: Number of trajectories (rows).
        length: Numbers per trajectory (columns).

    Returns:
        float64 [count, length].

    Raises:
        ValueError: `seed`, `batch`, `count` or `length` is negative.
    """
    if min(seed, batch, count, length) < 0:
        raise ValueError(f"a stream needs numbers >= 0: seed={seed} batch={batch} count={count} length={length}")
    digest = blake2b(f"{seed}/{purpose}".encode(), digest_size=16).digest()
    key = np.frombuffer(digest, dtype="<u8")
    chunks = -(-length // _CHUNK)
    values = np.empty((count, chunks, _CHUNK))
    for chunk in range(chunks):
        bits = np.random.Philox(key=key, counter=np.array([0, chunk, batch, 0], dtype=np.uint64))
        words = bits.random_raw(count * _CHUNK).reshape(count, _CHUNK)
        values[:, chunk] = (words >> np.uint64(11)) * 2.0**-53
    return values.reshape(count, chunks * _CHUNK)[:, :length]
