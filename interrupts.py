"""Ctrl-C and SIGTERM at any instant: one line and exit code 130 or 143, never a traceback.

The first signal unwinds the command, so that temporary files go, workers end and the terminal is restored. Code that
swallows the exception, or that takes too long to unwind, is cut off: every folder we write survives a kill.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import NoReturn

EXIT_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
_WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
GRACE_SECONDS = 15.0
"""Longest time to unwind after the first signal; a second signal ends it at once."""
GRACE_OF_WORK = 1.5
"""The same in seconds of processor time: code that computes on is not unwinding."""
SHOW_CURSOR = b"\x1b[?25h"

_caught: list[signal.Signals] = []
_promised: list[str] = []


class Stopped(BaseException):
    """The user or the system asks this process to stop. Not a `KeyboardInterrupt`, which libraries catch."""


def run_guarded(work: Callable[[], object]) -> None:
    """Run a command so that SIGINT and SIGTERM end it with one line and the exit code documented for them.

    A signal that the parent process had set to be ignored stays ignored. After the work, signals are ignored.

    Args:
        work: The command; what it raises without a signal is raised.
    """
    try:
        try:
            sys.unraisablehook = _unraisable
            threading.excepthook = _thread_failed
            for number in EXIT_CODES:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    signal.signal(number, _stop)
            work()
        finally:
            for number in EXIT_CODES:
                signal.signal(number, signal.SIG_IGN)
    except BaseException:  # while it unwinds, a signal may turn into any other exception
        if not _caught:
            raise
    if _caught:
        _leave()


def promise(text: str) -> None:
    """Have the line that ends this process also say what is kept, and what to do."""
    _promised.append(text)


def _stop(number: int, frame: FrameType | None) -> None:
    if _caught:
        _leave()
    _caught.append(signal.Signals(number))
    for timer, expired, seconds in (
        (signal.ITIMER_REAL, signal.SIGALRM, GRACE_SECONDS),
        (signal.ITIMER_PROF, signal.SIGPROF, GRACE_OF_WORK),
    ):
        signal.signal(expired, lambda *_: _leave())
        signal.setitimer(timer, seconds)
    raise Stopped


def _leave() -> NoReturn:
    """Say why and end, without the interpreter's own shutdown, which may fail half-way."""
    number = _caught[0]
    with suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    line = (": ".join([_WORDS[number], *_promised[-1:]]) + "\n").encode()
    with suppress(OSError):
        os.write(2, SHOW_CURSOR + line if os.isatty(2) else line)
    os._exit(EXIT_CODES[number])


def _unraisable(problem: sys.UnraisableHookArgs) -> None:
    """A signal that arrives where no exception can be raised, such as in a destructor, ends the process here."""
    if problem.exc_type is Stopped:
        _leave()
    if not _caught:
        sys.__unraisablehook__(problem)


def _thread_failed(problem: threading.ExceptHookArgs) -> None:
    if not _caught:
        threading.__excepthook__(problem)
