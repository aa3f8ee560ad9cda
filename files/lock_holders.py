"""Who holds a claim: a signature that another process can read, and what it can say about the signer."""

from __future__ import annotations

import os
import socket
import uuid
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_STOPPED = "Tt"
_ENDED = "ZX"
"""States of a process; one that has ended stays listed until its parent asks for its exit code."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that signed a claim.

    Attributes:
        pid: Its number.
        started: When it started, as the kernel counts; a number that is used again has another one. Empty: unknown.
        host: Name of its machine.
        machine: Boot and process namespace: process numbers mean something only within one. Empty: unknown.
        token: Different for every claim ever made.
    """

    pid: int
    started: str
    host: str
    machine: str
    token: str

    @property
    def is_here(self) -> bool:
        """Whether the process is or was one of this machine, so that it can be looked at."""
        return bool(self.machine) and self.machine == _machine()

    @property
    def is_gone(self) -> bool:
        """Whether the process has certainly ended; one on another machine never has."""
        if not self.is_here:
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        state, started = _stat(self.pid)
        return state in _ENDED or (bool(self.started) and self.started != started)

    def described(self) -> str:
        """The process in words, and what to do if it is stopped."""
        if self.host != socket.gethostname():
            return f"process {self.pid} on {self.host}"
        stopped = self.machine == _machine() and _stat(self.pid)[0] in _STOPPED
        return f"process {self.pid}" + (f" (stopped; end it with: kill -9 {self.pid})" if stopped else "")


def this_process() -> Holder:
    """A new signature of this process."""
    return Holder(os.getpid(), _stat(os.getpid())[1], socket.gethostname(), _machine(), uuid.uuid4().hex)


def _stat(pid: int) -> tuple[str, str]:
    """State of a process, one letter, and its start time in clock ticks; blank where the system does not tell."""
    with suppress(OSError, IndexError):
        # the second field is a name in parentheses, which may hold blanks and parentheses
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return fields[0], fields[19]
    return " ", ""


@cache
def _machine() -> str:
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    return ""
