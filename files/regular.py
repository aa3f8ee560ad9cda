"""Files of a folder that may be a stranger's: a pipe waits for ever, a device has no end, and a link leads anywhere."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO

from vcpo_bench.errors import DamagedResultError

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
IS_LINK = "is a link, which is not followed; put what it leads to in its place"
_OTHER = "is no regular file"


def open_regular(path: Path) -> IO[bytes]:
    """Open a file to read it, without buffer.

    Raises:
        DamagedResultError: It is a link, a folder, a pipe or a device.
        OSError: It is missing, or the disk cannot be read at the moment.
    """
    try:
        handle = os.open(path, _READ)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise DamagedResultError(IS_LINK, path) from error
        if error.errno in (errno.ENXIO, errno.ENODEV):  # a socket, a device without a driver
            raise DamagedResultError(_OTHER, path) from error
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise DamagedResultError(_OTHER, path)
    return os.fdopen(handle, "rb", buffering=0)


def read_regular(path: Path) -> bytes:
    """The contents of a file; raises what `open_regular` does."""
    with open_regular(path) as file:
        return file.read()


def size_of(path: Path) -> int:
    """Size of a file in bytes; raises what `open_regular` does."""
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        raise DamagedResultError(IS_LINK if stat.S_ISLNK(found.st_mode) else _OTHER, path)
    return found.st_size


def check_regular(path: Path) -> None:
    """Make sure that a file is one before a library opens it; raises what `open_regular` does."""
    size_of(path)


def check_itself(path: Path) -> None:
    """Make sure that a folder is one, and no link to another.

    Raises:
        DamagedResultError: It is a link.
    """
    if path.is_symlink():
        raise DamagedResultError(IS_LINK, path)
