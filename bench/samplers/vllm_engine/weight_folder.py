"""A folder for a copy of the weights, removed when it is closed, or by the next process if this one is killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TextIO

PREFIX = "vcpo-bench-weights-"
_LOCK = ".lock"


class WeightFolder:
    """A new folder among the temporary files. Those of processes that are gone are removed first.

    A lock file beside the folder is locked as long as its process lives.
    """

    def __init__(self) -> None:
        place = Path(tempfile.gettempdir())
        for lock in place.glob(f"{PREFIX}*{_LOCK}"):
            _remove_abandoned(lock)
        self._handle = _new_lock(place)
        self.path = Path(self._handle.name.removesuffix(_LOCK))
        self.path.mkdir(mode=0o700)

    def close(self) -> None:
        """Remove the folder."""
        _remove(Path(self._handle.name))
        self._handle.close()


def _new_lock(place: Path) -> TextIO:
    """A locked lock file of a new name."""
    while True:
        descriptor, name = tempfile.mkstemp(prefix=PREFIX, suffix=_LOCK, dir=place)
        os.close(descriptor)
        with suppress(OSError):  # another process took it for abandoned before it was locked
            handle = open(name, "r+")  # noqa: SIM115 - stays open as long as the folder
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if Path(name).exists():
                return handle
            handle.close()


def _remove_abandoned(lock: Path) -> None:
    with suppress(OSError), lock.open("r+") as handle:  # another user's, locked, or gone
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(lock)


def _remove(lock: Path) -> None:
    shutil.rmtree(lock.with_name(lock.name.removesuffix(_LOCK)), ignore_errors=True)
    lock.unlink(missing_ok=True)
