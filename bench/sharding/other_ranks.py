"""The other processes of a sharded cell, for process 0: starts them, gives them orders, notices that one has died."""

from __future__ import annotations

import multiprocessing
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.children import shielded
from vcpo_bench.bench.python_processes import command_of

GRACE_SECONDS = 10.0
"""How long after a failure to wait for the answers of the other processes, and for them to end."""


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
        self.pipe, rank_end = multiprocessing.Pipe()
        command = command_of("vcpo_bench.bench.sharding.follower", str(rank_end.fileno()))
        with shielded():
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=(rank_end.fileno(),))
        rank_end.close()
        self.answer: str | None = None
        self.send(setup)

    def send(self, message: Any) -> None:
        """Send an order; that a process has died is noticed when its answer is read."""
        self.answer = None
        with suppress(OSError):
            self.pipe.send(message)

    def hear(self, timeout: float | None) -> bool:
        """Whether it answers within `timeout` seconds; `answer` is then empty, or the error it raised."""
        if self.answer is None and self.pipe.poll(timeout):
            self.answer = self.pipe.recv()
        return self.answer is not None

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
    """Whether an error only says that another process is gone."""
    return any(word in error for word in ("gloo", "NCCL", "peer", "Broken pipe"))


class OtherRanks:
    """Processes 1 to N - 1 of a cell.

    Args:
        setups: What each must know; all start together.
    """

    def __init__(self, setups: Sequence[RankSetup]) -> None:
        self.ranks = [_Rank(setup) for setup in setups]

    @contextmanager
    def doing(self, verb: str, *arguments: Any) -> Iterator[None]:
        """Give all processes an order, while this one does its own part of the work in the block.

        Args:
            verb: The order, see `FollowerRank`.
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
                self._raise_failure(time.monotonic() + GRACE_SECONDS, problem)
            raise
        self._raise_failure(None, None)

    def _raise_failure(self, deadline: float | None, problem: Exception | None) -> None:
        """Wait for the answers of all processes, and raise for the one that failed first, if any did.

        A process that dies breaks the connections of the others, so their errors about that are not the cause.
        """
        died, failed = [], []
        for rank in self.ranks:
            try:
                rank.hear(None if deadline is None else max(0.0, deadline - time.monotonic()))
            except (EOFError, OSError):
                died.append(rank)
            if rank.answer:
                failed.append(rank)
                deadline = deadline or time.monotonic() + GRACE_SECONDS
        if died:
            listed = ", ".join(f"rank {rank.number} of {rank.count} {rank.end()}" for rank in died)
            raise RankDiedError(listed) from problem
        if failed:
            first = min(failed, key=lambda rank: _of_connection(rank.answer or ""))
            raise RankFailedError(f"rank {first.number} of {first.count} failed:\n{first.answer}") from problem

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
