"""A second process that computes some of the answers, where there is a second processor for it."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import Context
from multiprocessing.connection import Connection, Pipe
from typing import NoReturn, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")

PATIENCE = 60.0
"""Seconds without an answer after which the second process is given up."""


@contextmanager
def beside(function: Callable[[Item], Answer], items: Sequence[Item]) -> Iterator[Callable[[Item], Answer]]:
    """The function, to be asked for these items in their order, while a second process computes what it will say.

    That process is a fork: it begins with everything in memory. Where there can be none, or it does not answer, the
    function is called here.

    Args:
        function: Its answers can be pickled. It uses no thread and no lock of another thread.
        items: All that it will be asked.
    """
    if (forked := _fork()) is None:
        yield function
        return
    child, ours, theirs = forked
    if not child:
        ours.close()
        _answer(function, items, theirs)
    theirs.close()

    def ask(item: Item) -> Answer:
        with suppress(EOFError, OSError):
            if ours.poll(PATIENCE):
                answer: Answer = ours.recv()
                return answer
        ours.close()  # what comes late is for an item that has passed
        return function(item)

    try:
        yield ask
    finally:
        ours.close()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _fork() -> tuple[int, Connection, Connection] | None:
    """The number of the second process (0: this is it) and the ends of a pipe; None: there can be none.

    Libraries of macOS do not survive a fork.
    """
    if sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2:
        return None
    with warnings.catch_warnings(), suppress(OSError):
        warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12 on: of the threads of numerical libraries
        ours, theirs = Pipe(duplex=False)
        return os.fork(), ours, theirs
    return None


def _answer(function: Callable[[Item], Answer], items: Sequence[Item], pipe: Connection) -> NoReturn:
    """Send every answer and end, in silence: whatever goes wrong here goes wrong again where it is told."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends this one
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        warnings.simplefilter("ignore")
        for item in items:
            pipe.send(Context().run(function, item))  # in a context where nobody listens to progress
    finally:
        os._exit(0)
