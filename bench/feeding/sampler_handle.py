"""The sampler's process as the learner sees it: start, talk, watch, kill."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.opening import longest_response
from vcpo_bench.bench.feeding.shared_weights import SharedWeights
from vcpo_bench.bench.regimes.service_times import ServiceTimes

HANG_SECONDS = 10.0
"""A sampler that shows no sign of life for so long is killed; it shows one several times a second."""
STARTUP_SECONDS = 120.0
"""A sampler that has not shown itself after so long is killed: it imports torch first."""
LANGUAGE_MODEL = 10
"""Times longer than that for language models: they and their engines take their time to load and to draw a batch."""
TOKEN_SECONDS = 0.1
"""And so much more for each token of their longest response: a batch is drawn without a sign of life in between."""


class Setup(NamedTuple):
    """What a sampler process needs to know; the first thing it is sent."""

    config: CellConfig
    noise: str
    slots: int
    times: ServiceTimes
    start: Path | None = None
    device: str = "cpu"


class Result(NamedTuple):
    """One delivered ticket.

    Attributes:
        ticket: Its number.
        version: Updates seen by the weights that sampled it.
        started, finished: Seconds on the system's monotonic clock.
        arrays: Its tensors by name, `[1, G, T]` and alike.
    """

    ticket: int
    version: int
    started: float
    finished: float
    arrays: dict[str, NDArray[Any]]


class SamplerDown(Exception):  # noqa: N818 - a state of the sampler, handled where it is seen
    """The sampler is dead or does not answer; the text is the name of the event."""


def patience(config: CellConfig, hang_seconds: float) -> tuple[float, float]:
    """Seconds that a sampler may take to show itself, and may be silent later, before it counts as hung."""
    if not config.model:
        return STARTUP_SECONDS, hang_seconds
    drawing = TOKEN_SECONDS * longest_response(config)
    return STARTUP_SECONDS * LANGUAGE_MODEL, hang_seconds * LANGUAGE_MODEL + drawing


class Child:
    """A running sampler process.

    Args:
        setup: What it samples.
        weights: Where it finds weights and shows signs of life.
        hang_seconds: Silence after which it counts as hung.

    Raises:
        SamplerDown: It died at once.
    """

    def __init__(self, setup: Setup, weights: SharedWeights, hang_seconds: float = HANG_SECONDS) -> None:
        self._weights = weights
        self._startup, self._hang = patience(setup.config, hang_seconds)
        weights.forget_beat()
        self.pipe, theirs = multiprocessing.Pipe()
        descriptors = (theirs.fileno(), weights.descriptor)
        command = [sys.executable, "-m", "vcpo_bench.bench.feeding.sampler_process", *map(str, descriptors)]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=descriptors)
        theirs.close()
        self._born = time.monotonic()
        try:
            self._send(setup)
        except SamplerDown:
            self.close()
            raise

    def start(self, tickets: Sequence[int]) -> None:
        """Have it sample tickets, in this order."""
        self._send(("start", list(tickets)))

    def abort(self, tickets: Sequence[int]) -> None:
        """Have it give up tickets; what was already sent arrives late."""
        self._send(("abort", list(tickets)))

    def listen(self, timeout: float) -> list[Any]:
        """Messages that are there or come within `timeout` seconds: `("begun", tickets, version)` or a Result.

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
    """Tensors as arrays: they then travel by value, not as handles on shared files."""
    return {name: np.ascontiguousarray(tensor.numpy()) for name, tensor in tensors.items()}
