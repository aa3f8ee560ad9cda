"""Heartbeats of workers: when silence is worth a line, and when a worker counts as hung.

A heartbeat is any event of a worker except a message. While a cell trains there is one per update, at most every 0.3 s.
"""

from __future__ import annotations

import os
import time

QUIET_SECONDS = float(os.environ.get("VCPO_BENCH_QUIET_SECONDS", "60"))
"""A worker without a heartbeat for this long is named on the terminal, once."""
HANG_SECONDS = float(os.environ.get("VCPO_BENCH_HANG_SECONDS", "1800"))
"""A worker without a heartbeat for this long is killed, and its cell resumes from its checkpoint."""
LANGUAGE_MODEL = 10
"""Factor for language models, which may take long to load, to sample and to evaluate."""
OUT_OF_STEP = 4
"""A worker is quiet once it is silent for so many times its longest silence so far."""
POLL_SECONDS = 1.0
"""Seconds between two looks at the workers."""


class Heartbeat:
    """When a worker was last heard.

    Args:
        label: What it runs.
        language_model: Whether that trains a language model.
        now: Seconds on the monotonic clock.
    """

    def __init__(self, label: str, language_model: bool, now: float) -> None:
        factor = LANGUAGE_MODEL if language_model else 1
        self.limit = HANG_SECONDS * factor
        self._label, self._heard, self._told, self._paused = label, now, False, False
        self._factor, self._begun, self._longest = factor, False, 0.0

    def hear(self, now: float) -> None:
        """Note a heartbeat. The first says that the worker has begun, and those after a pause nothing of its pace."""
        if self._begun and not self._paused:
            self._longest = max(self._longest, now - self._heard)
        self._heard, self._told, self._paused, self._begun = now, False, False, True

    @property
    def quiet(self) -> float:
        """Seconds of silence that are worth a line: by the worker's own pace, once that is known."""
        return max(QUIET_SECONDS, OUT_OF_STEP * self._longest) if self._longest else QUIET_SECONDS * self._factor

    def pause(self) -> None:
        """Expect none until the next one: the worker waits for another process."""
        self._paused = True

    def hung(self, now: float) -> bool:
        """Whether it has been silent for too long."""
        return not self._paused and now - self._heard > self.limit

    def complaint(self, now: float, process: int | None) -> str:
        """The line to show when it becomes quiet; empty otherwise."""
        if self._told or self._paused or now - self._heard <= self.quiet:
            return ""
        self._told = True
        return (
            f"{self._label}: no heartbeat for {round(self.quiet, 1):g} s (process {process}); after {self.limit:g} s "
            "it is killed and its cell resumes from its checkpoint"
        )


class RunningClock:
    """The monotonic clock, less the time during which this process itself was stopped, as by Ctrl-Z."""

    def __init__(self) -> None:
        self._last, self._stopped = time.monotonic(), 0.0

    def now(self) -> float:
        """Seconds; to be read at least every `POLL_SECONDS`."""
        read = time.monotonic()
        gap = read - self._last
        if gap > 10 * POLL_SECONDS:
            self._stopped += gap
        self._last = read
        return read - self._stopped
