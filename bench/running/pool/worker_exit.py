"""Why a worker process died, in words."""

from __future__ import annotations

import signal
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WorkerExit:
    """The end of a worker process.

    Attributes:
        exitcode: Its exit code; negative for a signal.
        traceback: What it raised, where it could still say so; else empty.
        silent: Seconds without a heartbeat after which it was killed as hung; 0: it was not killed for that.
    """

    exitcode: int | None
    traceback: str = ""
    silent: float = 0.0

    @property
    def cause(self) -> str:
        """The cause in one phrase."""
        if self.silent:
            return f"no heartbeat for {self.silent:g} s"
        if self.traceback:
            return self.traceback.strip().splitlines()[-1]
        if self.exitcode is not None and self.exitcode < 0:
            return signal.Signals(-self.exitcode).name
        return f"exit code {self.exitcode}"

    @property
    def advice(self) -> str:
        """The likely reason, and what to do; empty where nothing is known."""
        if not self.silent and self.exitcode == -signal.SIGKILL:
            return "; most likely the machine ran out of memory: use fewer --jobs, --prompts or --responses"
        return ""
