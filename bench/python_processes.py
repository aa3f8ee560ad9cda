"""Starting Python processes of our own, which import nothing from the working directory: it may be a stranger's folder.

Python looks for modules there first when it is started with `-m` or `-c`, for those of its own library too.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SAFE_PATH = "PYTHONSAFEPATH"


def command_of(module: str, *arguments: str) -> list[str]:
    """The command that runs a module as a program."""
    return [sys.executable, "-P", "-m", module, *arguments]


@contextmanager
def safe_path() -> Iterator[None]:
    """Inside the block, processes whose command a library chooses import nothing from the working directory."""
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SAFE_PATH]
        else:
            os.environ[SAFE_PATH] = before


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
