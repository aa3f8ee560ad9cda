"""The other processes of a cell as process 0 sees them: start them, tell them what to do, notice that one has died."""

from __future__ import annotations

import multiprocessing
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.children import shielded

GRACE_SECONDS = 10.0
"""How long after a failure to wait for what the other processes say of it, and for them to end."""


class RankSetup(NamedTuple):
    """What a process needs to know; the first message it is sent.

    Attributes:
        config: The cell.
        start: Folder of the language model.
        device: See `Ranks.join`.
        number: Number of the process, from 1 on.
        port: Where process 0 waits for it, on this machine.
        threads: Threads that torch may use.
        plugins: Plug-in files it loads first.
    """

    config: CellConfig
    start: Path | None
    device: str
    number: int
    port: int
    threads: int
    plugins: tuple[Path, ...] = ()


class RankDiedError(RuntimeError):
    """A process of a cell has died; the message says which, and of what."""


class RankFailedError(RuntimeError):
    """A process of a cell has raised an error; the message says which, and ends with that error."""


class _Rank:
    """One of the other processes."""

    def __init__(self, setup: RankSetup) -> None:
        self.number, self.count = setup.number, setup.config.shards
        self.pipe, theirs = multiprocessing.Pipe()
        command = [sys.executable, "-m", "vcpo_bench.bench.sharding.follower", str(theirs.fileno())]
        with shielded():
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=(theirs.fileno(),))
        theirs.close()
        self.said: str | None = None
        self.send(setup)

    def send(self, message: Any) -> None:
        """One that has died says so when it is asked for its answer."""
        self.said = None
        with suppress(OSError):
            self.pipe.send(message)

    def hear(self, timeout: float | None) -> bool:
        """Whether it answers within `timeout` seconds; `said` is then empty, or the error it raised."""
        if self.said is None and self.pipe.poll(timeout):
            self.said = self.pipe.recv()
        return self.said is not None

    def end(self) -> str:
        """How it ended, in words."""
        try:
            code = self.process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            return "closed its connection"
        cause = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        memory = "; most likely the machine ran out of memory" if code == -signal.SIGKILL else ""
        return f"died ({cause}){memory}"


def _of_connection(error: str) -> bool:
    """Whether an error says no more than that another process is gone."""
    return any(word in error for word in ("gloo", "NCCL", "peer", "Broken pipe"))


class Crew:
    """Processes 1 to N - 1 of a cell.

    Args:
        setups: What each must know; they start at once.
    """

    def __init__(self, setups: Sequence[RankSetup]) -> None:
        self.ranks = [_Rank(setup) for setup in setups]

    @contextmanager
    def doing(self, verb: str, *arguments: Any) -> Iterator[None]:
        """Have all processes do something while this one does its own part of it in the block.

        Args:
            verb: What to do, see `follower`.
            arguments: Its arguments.

        Raises:
            RankDiedError: One died.
            RankFailedError: One raised an error.
        """
        for rank in self.ranks:
            rank.send((verb, *arguments))
        try:
            yield
        except Exception as problem:
            if _of_connection(str(problem)):
                self._blame(time.monotonic() + GRACE_SECONDS, problem)
            raise
        self._blame(None, None)

    def _blame(self, deadline: float | None, problem: Exception | None) -> None:
        """Wait for what all processes say, and raise for the one that failed first, if any did.

        One that dies takes the others' connections with it: what they say of that is no cause.
        """
        died, failed = [], []
        for rank in self.ranks:
            try:
                rank.hear(None if deadline is None else max(0.0, deadline - time.monotonic()))
            except (EOFError, OSError):
                died.append(rank)
            if rank.said:
                failed.append(rank)
                deadline = deadline or time.monotonic() + GRACE_SECONDS
        if died:
            named = ", ".join(f"rank {rank.number} of {rank.count} {rank.end()}" for rank in died)
            raise RankDiedError(named) from problem
        if failed:
            first = min(failed, key=lambda rank: _of_connection(rank.said or ""))
            raise RankFailedError(f"rank {first.number} of {first.count} failed:\n{first.said}") from problem

    def close(self) -> None:
        """Tell all processes to end, and kill those that do not."""
        for rank in self.ranks:
            rank.pipe.close()
        deadline = time.monotonic() + GRACE_SECONDS
        for rank in self.ranks:
            with suppress(subprocess.TimeoutExpired):
                rank.process.wait(max(0.0, deadline - time.monotonic()))
            rank.process.kill()
            rank.process.wait()
