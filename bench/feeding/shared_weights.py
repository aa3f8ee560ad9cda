"""Memory shared by the learner and the sampler process: the weights, their version, and the sampler's heartbeat."""

from __future__ import annotations

import mmap
import os
import tempfile
import time

import numpy as np
import torch

from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.errors import UsageError

_IN_RAM = "/dev/shm"
_HEADER_BYTES = 64
_SEQUENCE, _VERSION, _BEAT, _BUSY = range(4)


class SharedWeights:
    """A memory map of all trained parameters after a small header. One process publishes, another reads.

    A sequence number is odd while weights are being written (a seqlock): a reader never accepts a mixture of two
    versions.

    Args:
        descriptor: File descriptor of the memory; this object keeps it open.
        size: Number of parameters.
    """

    def __init__(self, descriptor: int, size: int) -> None:
        self.descriptor = descriptor
        self._map = mmap.mmap(descriptor, _HEADER_BYTES + 4 * size)
        self._header = np.frombuffer(self._map, dtype=np.int64, count=_HEADER_BYTES // 8)
        self._weights = torch.frombuffer(self._map, dtype=torch.float32, offset=_HEADER_BYTES, count=size)

    @classmethod
    def create(cls, size: int) -> SharedWeights:
        """New memory, in RAM where the system has a folder for it; released when the last process closes it.

        Raises:
            UsageError: Neither that folder nor the one for temporary files can be written.
        """
        places: list[str | None] = [_IN_RAM] if os.access(_IN_RAM, os.W_OK) else []
        problem = OSError()
        for place in (*places, None):
            try:
                with tempfile.TemporaryFile(dir=place) as file:
                    os.ftruncate(file.fileno(), _HEADER_BYTES + 4 * size)
                    return cls(os.dup(file.fileno()), size)
            except OSError as error:
                problem = error
        raise UsageError(
            f"the learner and the sampler share weights through a file in {_IN_RAM} or in the folder for temporary "
            f"files, and neither can be written ({problem.strerror}); set TMPDIR to a folder that can"
        )

    def publish(self, policy: Policy, version: int) -> None:
        """Make the weights of `policy` visible as `version`."""
        self._header[_SEQUENCE] += 1
        with torch.no_grad():
            torch.cat([p.flatten().cpu() for p in policy.trainable()], out=self._weights)
        self._header[_VERSION] = version
        self._header[_SEQUENCE] += 1

    def read(self, policy: Policy) -> int:
        """Copy the newest weights into `policy`; their version."""
        while True:
            before = int(self._header[_SEQUENCE])
            version, weights = int(self._header[_VERSION]), self._weights.clone()
            if before % 2 == 0 and int(self._header[_SEQUENCE]) == before:
                break
        pieces = torch.split(weights, [p.numel() for p in policy.trainable()])
        with torch.no_grad():
            for parameter, piece in zip(policy.trainable(), pieces, strict=True):
                parameter.copy_(piece.view_as(parameter))
        return version

    def beat(self, busy: float) -> None:
        """Record a heartbeat and the seconds the sampler has been busy so far."""
        self._header[_BUSY] = int(busy * 1e9)
        self._header[_BEAT] = time.monotonic_ns()

    def forget_beat(self) -> None:
        """Clear the heartbeat before a new sampler starts."""
        self._header[_BEAT] = self._header[_BUSY] = 0

    def silence(self) -> float | None:
        """Seconds since the sampler's last heartbeat; None before the first."""
        last = int(self._header[_BEAT])
        return (time.monotonic_ns() - last) / 1e9 if last else None

    @property
    def busy(self) -> float:
        """Seconds the sampler has been busy."""
        return float(self._header[_BUSY]) / 1e9

    def close(self) -> None:
        """Close the descriptor; the map is released with this object."""
        os.close(self.descriptor)
