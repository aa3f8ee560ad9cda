"""A second process that computes some of the answers, where there is a second processor for it."""

from __future__ import annotations

import gc
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import Context
from multiprocessing.connection import Pipe
from typing import TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")

welcome = False
"""Whether this process may be forked: its other threads hold no lock that the answers need."""
PATIENCE = 60.0
"""Seconds without an answer after which the second process is given up."""


@contextmanager
def beside(function: Callable[[Item], Answer], items: Sequence[Item]) -> Iterator[Callable[[Item], Answer]]:
    """The function, to be asked for these items in their order, while a fork of this process computes its answers.

    Where there is no fork, or it has no answer, the function is called here.
    """
    ours, theirs = Pipe(duplex=False)
    child = -1
    if welcome and sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1:  # libraries of macOS do not survive it
        with warnings.catch_warnings(), suppress(OSError):
            warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12 on, for threads of any library
            child = os.fork()
    if child == 0:
        try:  # in silence: whatever goes wrong here goes wrong again where it is told
            gc.freeze()
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends this one
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            warnings.simplefilter("ignore")
            ours.close()
            for item in items:
                theirs.send(Context().run(function, item))  # where nobody listens to progress
        finally:
            os._exit(0)
    theirs.close()

    def ask(item: Item) -> Answer:
        with suppress(EOFError, OSError):
            if ours.poll(PATIENCE):
                answer: Answer = ours.recv()
                return answer
        ours.close()  # what comes late would be taken for the answer to a later item
        return function(item)

    try:
        yield ask
    finally:
        ours.close()
        if child > 0:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
