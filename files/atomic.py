"""Files replaced as a whole: whatever happens, a reader meets the old file or the new one, never half of either.

A folder may be a stranger's, and a name in it a link that leads to a file of ours. So a file is made under a name that
was free and then renamed, which replaces a link and never follows it. Both happen in a folder that is held open: there
is no moment at which another process could put a link in the way.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from vcpo_bench.files.durable import sync_opened
from vcpo_bench.files.folders import opened

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def replacing(path: Path, typed: bool = False, below: Path | None = None) -> Iterator[IO[bytes]]:
    """Write to the yielded file; it takes the place of `path` when the block ends, and is removed when it raises.

    Contents and name are on the disk then: a power loss leaves the old file before, and the new one after. The
    permissions to read and write of the file it replaces are kept.

    Args:
        path: The file; its folder must exist.
        typed: The user named this very file: a link is followed, and a device or pipe is written directly. Otherwise
            whatever has the name is replaced.
        below: A folder that the user named, such as a results folder: below it, no folder is reached through a link.

    Raises:
        UsageError: A folder below `below` is a link.
        OSError: The file cannot be written; the error names `path`.
    """
    if typed and path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    target = path.resolve() if typed else path
    draft = f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.draft"
    try:
        with opened(target.parent, below) as folder:
            handle = os.open(draft, _NEW, 0o666, dir_fd=folder)
            try:
                with os.fdopen(handle, "wb") as file:
                    yield file
                    file.flush()
                    _keep_mode(target.name, folder, handle)
                    os.fsync(handle)
                os.replace(draft, target.name, src_dir_fd=folder, dst_dir_fd=folder)
                sync_opened(folder)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(draft, dir_fd=folder)
    except OSError as error:
        ours = (None, draft, target.name, str(target.parent))
        if error.errno is None or error.filename not in ours:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def check_writable(path: Path, typed: bool = False, below: Path | None = None) -> None:
    """Check that `replacing` can write a file later, and leave nothing behind.

    Raises:
        OSError: It cannot.
    """
    if typed and path.exists() and not path.is_file():
        with path.open("ab"):
            return
    target = path.resolve() if typed else path
    draft = f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.draft"
    with opened(target.parent, below) as folder:
        os.close(os.open(draft, _NEW, 0o666, dir_fd=folder))
        os.unlink(draft, dir_fd=folder)


def write_bytes(path: Path, content: bytes, typed: bool = False, below: Path | None = None) -> None:
    """Replace a file as a whole; see `replacing`."""
    with replacing(path, typed, below) as file:
        file.write(content)


def write_text(path: Path, content: str, typed: bool = False, below: Path | None = None) -> None:
    """Replace a UTF-8 text file as a whole; see `replacing`."""
    write_bytes(path, content.encode("utf-8"), typed, below)


def _keep_mode(name: str, folder: int, handle: int) -> None:
    """Give a new file the permissions of the one it replaces; a stranger's may not make it a program."""
    with suppress(FileNotFoundError):
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if stat.S_ISREG(mode):
            os.fchmod(handle, stat.S_IMODE(mode) & 0o666)
