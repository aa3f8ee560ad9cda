"""Recognizing a full disk, whichever library reports it, and the folder on it."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from vcpo_bench.errors import DiskFullError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_TEXTS = ("No space left on device", "Disk quota exceeded")
LITTLE_BYTES = 2**20
"""A file system with less free space than this counts as the full one."""


def is_disk_full(error: BaseException | None) -> bool:
    """Whether an error, or one that it was raised from, says that a disk or a quota is full."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        if any(text in str(error) for text in _TEXTS):  # pyarrow, safetensors and torch keep the text only
            return True
        error = error.__cause__ or error.__context__
    return False


def disk_full(written: Iterable[Path]) -> DiskFullError:
    """The error to raise, naming the folder on the full disk.

    Args:
        written: Where the work writes, most important first; the folder for temporary files is added.
    """
    folders = [_existing(path.absolute()) for path in (*written, Path(tempfile.gettempdir()))]
    full = next((folder for folder in folders if _free_bytes(folder) < LITTLE_BYTES), folders[0])
    return DiskFullError(f"{full}: the disk is full; free space there, then run the same command again")


@contextmanager
def full_disks_named(*written: Path) -> Iterator[None]:
    """Turn what a full disk raises inside the block into the error that users get; `written` as in `disk_full`.

    Raises:
        DiskFullError: There is no space left.
    """
    try:
        yield
    except DiskFullError:
        raise
    except Exception as problem:
        if is_disk_full(problem):
            raise disk_full(written) from problem
        raise


def check_space(folder: Path) -> None:
    """Make sure that a little can be written to a folder.

    Raises:
        DiskFullError: A disk or a quota is full.
    """
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(LITTLE_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        if error.errno in _FULL:
            raise disk_full([folder]) from error
        raise


def _existing(path: Path) -> Path:
    """The folder itself, or the closest one above it that exists."""
    return next((each for each in (path, *path.parents) if each.is_dir()), Path("/"))


def _free_bytes(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize
