"""Python programs of a model, run by Monty: an interpreter of a subset of Python that has no way out.

Each program has a session of its own, a fixed clock and seed, and limits of time, memory and output. The interpreter
is a process of its own (`pydantic-monty`), behind the strongest wall of the operating system there is (`walls`).
"""

from __future__ import annotations

import atexit
import datetime
import importlib
import os
import shutil
import tempfile
import threading
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from vcpo_bench.bench.sandbox.walls import Wall, launcher, strongest
from vcpo_bench.errors import UsageError, how_to_install

SECONDS = 0.5
"""Time of a program."""
MEMORY = 64 * 2**20
"""Heap of a program in bytes."""
OUTPUT = 10_000
"""Bytes that a program may print; what it prints beyond them ends it."""
LONGEST = 20_000
"""Characters of a program; a longer one is not run."""

_RECURSION = 200
_NO_VALUE = "None"  # the last line: a value handed over would be built again in this process, at any size
_GRACE = 1.0  # seconds past its time after which the process of a program is killed
_CLOCK = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)

Status = Literal["ok", "error", "time", "memory", "output", "crashed"]
"""How a program ended: normally, with an exception, at a limit, or with the death of its interpreter."""


class Ended(NamedTuple):
    """What became of a program.

    Attributes:
        status: How it ended.
        text: What it printed, at most 10,000 bytes; after an error, the error follows in one line.
    """

    status: Status
    text: str


class PythonSandbox:
    """Runs programs one after the other, each for itself; safe to call from several threads.

    Args:
        wall: What stands around the interpreter; None: the strongest there is.
        seconds: Time of a program.
        memory: Its heap in bytes.

    Raises:
        UsageError: `pydantic-monty` is not installed.
    """

    def __init__(self, wall: Wall | None = None, seconds: float = SECONDS, memory: int = MEMORY) -> None:
        self._monty = _package()
        self.wall = strongest() if wall is None else wall
        self._folder = Path(tempfile.mkdtemp(prefix="vcpo-bench-sandbox-"))
        self._limits = {
            "max_feed_duration_secs": seconds,
            "max_memory": memory,
            "max_recursion_depth": _RECURSION,
            "max_suspensions": 1,
            "max_total_sleep_secs": 0.0,
        }
        self._policy = {
            "datetime": _CLOCK,
            "timezone": "utc",
            "sleep": "zero",
            "process_time": "zero",
            "random_start": {"seed": 0},
        }
        self._pool = self._monty.Monty(binary_path=self._launcher(), max_processes=1, request_timeout=seconds + _GRACE)
        self._pool.__enter__()
        self._lock = threading.Lock()
        atexit.register(self.close)

    def _launcher(self) -> Path:
        script = self._folder / "interpreter"
        program = importlib.import_module("pydantic_monty._binary").find_monty_binary()
        script.write_text(launcher(self.wall, Path(program)))
        script.chmod(0o700)
        return script

    def run(self, program: str) -> Ended:
        """Run one program and say what it printed; nothing that an earlier one did is left.

        Args:
            program: Its source.
        """
        if len(program) > LONGEST:
            return Ended("error", f"a program of more than {LONGEST} characters is not run")
        printed = self._monty.CollectString(max_bytes=OUTPUT)
        with self._lock:
            try:
                with self._pool.checkout(limits=self._limits, os_policy=self._policy) as session:
                    session.feed_run(f"{program}\n{_NO_VALUE}", print_callback=printed)
            except self._monty.MontyCrashedError as error:
                return Ended("time" if error.timed_out else "crashed", printed.output)
            except self._monty.MontyError as error:
                return _failed(error, printed.output)
        return Ended("ok", printed.output)

    def close(self) -> None:
        """End the interpreter."""
        atexit.unregister(self.close)
        self._pool.__exit__(None, None, None)
        shutil.rmtree(self._folder, ignore_errors=True)


def _failed(error: Exception, printed: str) -> Ended:
    line = " ".join(str(error).split())[:500]
    return Ended(_status(line), printed + line)


def _status(line: str) -> Status:
    """Which limit an error means, if any."""
    if line.startswith("TimeoutError"):
        return "time"
    if line.startswith("MemoryError"):
        return "output" if f"> {OUTPUT} bytes" in line else "memory"
    return "error"


def _package() -> Any:
    try:
        return importlib.import_module("pydantic_monty")
    except ImportError as error:
        raise UsageError(f"running code needs pydantic-monty: {how_to_install('tools')}") from error


def check_installed() -> None:
    """Refuse to go on where there is no interpreter.

    Raises:
        UsageError: `pydantic-monty` is not installed.
    """
    _package()


def python_sandbox() -> PythonSandbox:
    """The sandbox of this process: a fork must not share the pipes of its parent."""
    return _sandbox(os.getpid())


@lru_cache(maxsize=1)
def _sandbox(_: int) -> PythonSandbox:
    return PythonSandbox()
