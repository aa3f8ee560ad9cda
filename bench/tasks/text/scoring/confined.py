"""Judging text of a model by a package that might run it: in a process of its own, which can only compute.

The process has no environment of ours, writes no file, starts no process, opens no connection, uses bounded memory and
time, and refuses code made from text unless it is arithmetic (`confined_program`).
"""

from __future__ import annotations

import os
import pickle
import select
import subprocess
import sys
import threading
import weakref
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from vcpo_bench.bench.tasks.text.scoring import confined_program as program
from vcpo_bench.errors import UsageError

SECONDS = 3
"""Processor time for one answer, after which it is wrong."""

_PATIENCE = 60  # times SECONDS: the longest wait by the clock, on a machine that is busy with other things
_START_SECONDS = 300
_LONGEST_REPLY = 2000
_KEPT = ("PATH", "LANG", "LC_ALL")


class ConfinedJudge:
    """A judge in a process of its own, started at the first question and again after one that ended it.

    Args:
        judge: `reasoning-gym` or `math-verify`.
        of: What it judges: the name of a data set.
        seconds: Processor time for one answer.
    """

    def __init__(self, judge: str, of: str = "", seconds: float = SECONDS) -> None:
        self._judge, self._of, self._seconds = judge, of, seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def right(self, *request: Any) -> bool:
        """The verdict; False where the package fails, is stopped at a limit, or is kept from running the text.

        Args:
            request: What the judge takes: for reasoning-gym the answer and the entry, for math-verify both answers.

        Raises:
            UsageError: The package cannot be loaded.
        """
        with self._lock:
            process = self._process or self._start()
            reply = _ask(process, request, self._seconds * _PATIENCE)
            if reply is None:
                self.close()
            return reply == b"1"

    def close(self) -> None:
        """End the process; the next question starts another."""
        if self._process is not None:
            _end(self._process)
            self._process = None

    def _start(self) -> subprocess.Popen[bytes]:
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        process = subprocess.Popen(
            [sys.executable, "-I", program.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**kept, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"},
            cwd=os.sep,
        )
        weakref.finalize(self, _end, process)
        path = [str(Path(entry).absolute()) for entry in sys.path]
        settings = {"judge": self._judge, "of": self._of, "seconds": self._seconds, "path": path}
        reply = _ask(process, settings, _START_SECONDS)
        if reply != program.READY:
            _end(process)
            reason = (reply or b"its process ended").removeprefix(program.FAILED).decode(errors="replace").strip()
            raise UsageError(f"{self._judge}: cannot be used to judge answers ({reason})")
        self._process = process
        return process


def _ask(process: subprocess.Popen[bytes], message: object, seconds: float) -> bytes | None:
    """The reply; None if the process ended or said nothing in time. It is not unpickled: the other side may be bad."""
    assert process.stdin is not None
    assert process.stdout is not None
    content = pickle.dumps(message)
    try:
        process.stdin.write(program.LENGTH.pack(len(content)) + content)
        process.stdin.flush()
    except OSError:
        return None
    if not select.select([process.stdout], [], [], seconds)[0]:
        return None
    head = process.stdout.read(program.LENGTH.size)
    if len(head) < program.LENGTH.size:
        return None
    return process.stdout.read(min(program.LENGTH.unpack(head)[0], _LONGEST_REPLY))


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    for stream in (process.stdin, process.stdout):
        if stream is not None and not stream.closed:
            with suppress(OSError):  # a message it never read
                stream.close()
    process.wait()


def confined_judge(judge: str, of: str = "") -> ConfinedJudge:
    """The judge of this process, one for each name: a fork must not share the pipes of its parent."""
    return _judge(os.getpid(), judge, of)


@lru_cache(maxsize=16)
def _judge(_: int, judge: str, of: str) -> ConfinedJudge:
    return ConfinedJudge(judge, of)
