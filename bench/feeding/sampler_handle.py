"""The sampler process as the learner sees it: start it, send orders, read deliveries, watch its heartbeat, kill it."""

from __future__ import annotations

import multiprocessing
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.opening import longest_response
from vcpo_bench.bench.feeding.shared_weights import SharedWeights
from vcpo_bench.bench.python_processes import command_of, shielded
from vcpo_bench.bench.regimes.service_times import ServiceTimes

HANG_SECONDS = 10.0
"""A sampler without a heartbeat for this long is killed; it sends several per second."""
STARTUP_SECONDS = 120.0
"""A sampler without its first heartbeat after this long is killed; it imports torch first."""
LANGUAGE_MODEL = 10
"""Multiplier on both timeouts for language models, which are slower to load and to sample."""
TOKEN_SECONDS = 0.1
"""Extra seconds per token of the longest response: no heartbeat is sent while a batch is being generated."""


class SamplerSetup(NamedTuple):
    """What a sampler process needs to know; the first message it is sent.

    Attributes:
        config: The cell.
        slots: Groups it works on at once.
        times: Service times to emulate, in seconds; 0: none.
        start: File of the start policy, or folder of the language model; None: the policy that ships with the task.
        device: Where it samples.
        plugins: Plug-in files it loads first, so that it knows the same names as the learner's process.
    """

    config: CellConfig
    slots: int
    times: ServiceTimes
    start: Path | None = None
    device: str = "cpu"
    plugins: tuple[Path, ...] = ()


class Delivery(NamedTuple):
    """The group of one ticket, as delivered.

    Attributes:
        ticket: Its number.
        version: Updates seen by the weights that sampled it.
        started: Seconds on the system's monotonic clock when sampling began.
        finished: The same, when the ticket was delivered.
        arrays: The fields of its `Trajectories` as arrays, with one group: `[1, G, T]` and so on.
    """

    ticket: int
    version: int
    started: float
    finished: float
    arrays: dict[str, NDArray[Any]]


class SamplerDown(Exception):  # noqa: N818 - a state of the sampler, handled where it is seen
    """The sampler is dead or does not answer; the message is the name of the event."""


def patience(config: CellConfig, hang_seconds: float) -> tuple[float, float]:
    """Timeouts of a sampler in seconds: until its first heartbeat, and between two later ones."""
    if not config.model:
        return STARTUP_SECONDS, hang_seconds
    drawing = TOKEN_SECONDS * longest_response(config)
    return STARTUP_SECONDS * LANGUAGE_MODEL, hang_seconds * LANGUAGE_MODEL + drawing


class SamplerHandle:
    """A running sampler process.

    Args:
        setup: What it samples.
        weights: Where it reads weights and writes heartbeats.
        hang_seconds: Seconds without a heartbeat after which it counts as hung.

    Raises:
        SamplerDown: It died at once.
    """

    def __init__(self, setup: SamplerSetup, weights: SharedWeights, hang_seconds: float = HANG_SECONDS) -> None:
        self._weights = weights
        self._startup, self._hang = patience(setup.config, hang_seconds)
        weights.forget_beat()
        self.pipe, theirs = multiprocessing.Pipe()
        descriptors = (theirs.fileno(), weights.descriptor)
        command = command_of("vcpo_bench.bench.feeding.sampler_process", *map(str, descriptors))
        with shielded():
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=descriptors)
        theirs.close()
        self._born = time.monotonic()
        try:
            self._send(setup)
        except SamplerDown:
            self.close()
            raise

    def start(self, tickets: Sequence[int]) -> None:
        """Order it to sample tickets, in this order."""
        self._send(("start", list(tickets)))

    def abort(self, tickets: Sequence[int]) -> None:
        """Order it to drop tickets; those it has sent already still arrive."""
        self._send(("abort", list(tickets)))

    def listen(self, timeout: float) -> list[Any]:
        """Messages received within `timeout` seconds: `("begun", tickets, version)` or a `Delivery`.

        Raises:
            SamplerDown: It died, or hangs.
        """
        messages: list[Any] = []
        try:
            while self.pipe.poll(0 if messages else timeout):
                messages += self.pipe.recv()
        except (EOFError, OSError):
            if not messages:
                raise SamplerDown("sampler_died") from None
        if not messages:
            self._check()
        return messages

    def _check(self) -> None:
        if self.process.poll() is not None:
            raise SamplerDown("sampler_died")
        silence = self._weights.silence()
        if silence is None:
            if time.monotonic() - self._born > self._startup:
                raise SamplerDown("sampler_did_not_start")
        elif silence > self._hang:
            raise SamplerDown("sampler_hung")

    def _send(self, message: Any) -> None:
        try:
            self.pipe.send(message)
        except OSError:
            raise SamplerDown("sampler_died") from None

    def close(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.wait()
        self.pipe.close()


def numpy_arrays(tensors: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """Tensors as arrays: a pipe sends those by value, not as handles of shared files."""
    return {name: np.ascontiguousarray(tensor.numpy()) for name, tensor in tensors.items()}
