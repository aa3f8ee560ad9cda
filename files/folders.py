"""Folders inside a folder that the user named: whoever made that one may have put links in it, which lead anywhere."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from vcpo_bench.errors import UsageError
from vcpo_bench.files.regular import IS_LINK

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NOT_FOLLOWED = {errno.ENOTDIR, errno.ELOOP}


def refuse_link(path: Path) -> None:
    """Refuse a name in a folder that may be a stranger's, if it is that of a link.

    Raises:
        UsageError: It is.
    """
    if path.is_symlink():
        raise UsageError(f"{path} {IS_LINK}")


def is_folder(path: Path) -> bool:
    """Whether there is a folder, and not only a link to one."""
    return path.is_dir() and not path.is_symlink()


@contextmanager
def opened(folder: Path, below: Path | None = None) -> Iterator[int]:
    """A descriptor of a folder, to name files in it even if another folder or a link takes its name meanwhile.

    Args:
        folder: The folder.
        below: One above it: on the way from there, no link is followed; None: links are followed.

    Raises:
        UsageError: A link stands in for a folder.
        OSError: There is no such folder.
    """
    handle = _walk(below or folder, folder.relative_to(below).parts if below else (), make=False)
    try:
        yield handle
    finally:
        os.close(handle)


def made(below: Path, *names: str) -> Path:
    """The folder of these names, one in the other, made if need be; none of them may be a link.

    Raises:
        UsageError: A link has its name.
        OSError: It cannot be made.
    """
    os.close(_walk(below, names, make=True))
    return below.joinpath(*names)


@contextmanager
def working_at_root() -> Iterator[None]:
    """Call a library that uses files of the working directory, which may be a stranger's, from one that is nobody's."""
    before = os.open(".", _OPEN)
    try:
        os.chdir("/")
        try:
            yield
        finally:
            os.fchdir(before)
    finally:
        os.close(before)


def _walk(below: Path, names: Sequence[str], make: bool) -> int:
    handle, place = os.open(below, _OPEN), below
    for name in names:
        outer, place = handle, place / name
        try:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=outer)
            handle = os.open(name, _OPEN | os.O_NOFOLLOW, dir_fd=outer)
        except OSError as error:
            if error.errno in _NOT_FOLLOWED:
                refuse_link(place)
            raise OSError(error.errno, error.strerror, str(place)) from error
        finally:
            os.close(outer)
    return handle
