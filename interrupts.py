"""Ctrl-C and SIGTERM at any instant: one line and exit code 130 or 143, never a traceback.

The first signal unwinds the command, so that temporary files go, workers end and the terminal is restored. Code that
swallows the exception, that takes too long to unwind, or that is inside a call of a library which does not return, is
cut off within two seconds: every folder we write survives a kill.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import NoReturn

EXIT_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
_WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
GRACE_SECONDS = 1.8
"""Longest time to unwind after the first signal; a second signal ends it at once."""
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
            _start_watch()
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
    raise Stopped


def _start_watch() -> None:
    """Start the thread that cuts off; the system tells it of signals, also while this thread is inside a library."""
    ends = os.pipe()
    told, tell = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 3) for end in ends)  # not the number of a closed stream
    for end in ends:
        os.close(end)
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, EXIT_CODES)  # it must not receive what this thread blocks
    threading.Thread(target=_watch, args=(told,), daemon=True).start()
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _watch(told: int) -> None:
    while (number := os.read(told, 1)[0]) not in EXIT_CODES:
        pass
    time.sleep(GRACE_SECONDS)
    _caught[:] = _caught or [signal.Signals(number)]
    _leave()


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
