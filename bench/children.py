"""Starting a child process that leaves Ctrl-C and SIGTERM to its parent."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

LEFT_TO_THE_PARENT = frozenset({signal.SIGINT, signal.SIGTERM})


@contextmanager
def shielded() -> Iterator[None]:
    """Block both signals inside the block: a child started there never receives them, also while it imports.

    A terminal or a scheduler sends them to the whole process group, but only the parent may react; a child ends with
    its parent. What arrives meanwhile reaches the parent when the block ends.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, LEFT_TO_THE_PARENT)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
