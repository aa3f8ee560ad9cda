"""Locks between processes: held through a file, released with the process, and signed by their holder.

Where the file system has no `flock` (some network file systems answer ENOLCK), a second file that only one process can
create stands in for it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from vcpo_bench.errors import DamagedResultError
from vcpo_bench.files.lock_holders import Holder, this_process
from vcpo_bench.files.regular import read_regular

LOCK_FILE = ".lock"
"""Usual name of the file through which a folder is locked."""
PATIENCE_SECONDS = 10.0
"""How long a process waits for a lock before it says who holds it."""

_UNSUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP}
_POLL_SECONDS = 0.05
_LOCK = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""What is signed must be a lock: a link may lead to any file."""


class LockHeldError(Exception):
    """Another process holds the lock; the message says which."""


class FileLock:
    """An exclusive lock, held inside a `with` block.

    Args:
        path: The file through which it is held; created if missing, with its folder. Both may be removed while others
            wait: they then lock new ones.
        say: Called with one line, which says who holds the lock, when waiting takes long.
        wait: Wait for another process that holds it, as long as it takes.

    Attributes:
        has_flock: Whether the file system locks; known once the lock is held.
        stand_in: The file that stands in for a lock where it does not.
    """

    def __init__(self, path: Path, say: Callable[[str], object] = lambda _: None, wait: bool = True) -> None:
        self.path, self._say, self._wait = path, say, wait
        self.stand_in = path.with_name(f"{path.name}.held")
        self._handle: int | None = None
        self._signature = ""
        self.has_flock = True

    def __enter__(self) -> Self:
        """Hold the lock.

        Raises:
            LockHeldError: Another process holds it, and `wait` is False.
            DamagedResultError: A link or a pipe has its name.
            OSError: The file cannot be created.
        """
        began, told = time.monotonic(), False
        while not self._try():
            if not self._wait:
                raise LockHeldError(self._holder())
            if not told and time.monotonic() - began > PATIENCE_SECONDS:
                self._say(f"waiting for {self._holder()}, which holds {self.path}")
                told = True
            time.sleep(_POLL_SECONDS)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Release it."""
        if not self.has_flock and _read(self.stand_in) == self._signature:
            self.stand_in.unlink(missing_ok=True)
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _holder(self) -> str:
        found = Holder.read(_read(self.path if self.has_flock else self.stand_in))
        return found.described() if found else "a process that did not sign"

    def _try(self) -> bool:
        self._signature = this_process().text()
        try:
            self.path.parent.mkdir(exist_ok=True)
            handle = os.open(self.path, _LOCK | os.O_CREAT, 0o666)
        except FileNotFoundError:  # the folder has just been removed
            return False
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise DamagedResultError("is a link, so it cannot lock the folder; delete it", self.path) from error
            raise
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise DamagedResultError("is no regular file, so it cannot lock the folder; delete it", self.path)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _same_file(handle, self.path):
                with suppress(OSError):  # a full disk: the lock holds without a signature
                    os.ftruncate(handle, 0)
                    os.write(handle, self._signature.encode())
                self._handle, handle = handle, -1
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
            self.has_flock = False
            return self._try_stand_in()
        finally:
            if handle >= 0:
                os.close(handle)
        return self._handle is not None

    def _try_stand_in(self) -> bool:
        """Create the file that stands in for `flock`; one whose process is gone is removed first."""
        _remove_abandoned(self.stand_in)
        try:
            handle = os.open(self.stand_in, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except (FileExistsError, FileNotFoundError):
            return False
        with os.fdopen(handle, "w") as file:
            file.write(self._signature)
        return True


def _same_file(handle: int, path: Path) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(handle), path.stat())
    return False


def _remove_abandoned(stand_in: Path) -> None:
    """Remove a stand-in whose process has ended.

    Another process may remove it at the same moment and create its own. So it is renamed first and then read: what was
    renamed by mistake returns to its place.
    """
    seen = _read(stand_in)
    holder = Holder.read(seen)
    if not (holder.is_gone if holder else _is_old(stand_in)):
        return
    aside = stand_in.with_name(f"{stand_in.name}.{os.getpid()}")
    with suppress(FileNotFoundError, FileExistsError):
        stand_in.rename(aside)
        if _read(aside) != seen:
            os.link(aside, stand_in)
        aside.unlink()


def _is_old(path: Path) -> bool:
    """Whether a file without a signature has been there for long: its process was killed before it could sign."""
    with suppress(FileNotFoundError):
        return time.time() - path.stat().st_mtime > PATIENCE_SECONDS
    return False


def _read(path: Path) -> str:
    try:
        return read_regular(path).decode(errors="replace")
    except FileNotFoundError:
        return ""
