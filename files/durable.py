"""What must survive a power loss: contents and names pushed from memory to the disk."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

_TAKEN = {errno.ENOTEMPTY, errno.EEXIST}
_UNLINKABLE = {errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS}
_UNSYNCED = {errno.EINVAL, errno.EBADF}


def sync_file(path: Path) -> None:
    """Return once the contents of a file are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_names(folder: Path) -> None:
    """Return once the names in a folder are on the disk: what was created, renamed or removed there.

    Some file systems cannot sync a folder: there it returns at once.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        sync_opened(handle)
    finally:
        os.close(handle)


def sync_opened(folder: int) -> None:
    """`sync_names` of a folder that is open."""
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in _UNSYNCED:
            raise


def sync_folder(folder: Path) -> None:
    """Return once the files directly in a folder are on the disk, contents and names."""
    for path in sorted(folder.iterdir()):
        if path.is_file():
            sync_file(path)
    sync_names(folder)


def link_folder(folder: Path, target: Path) -> None:
    """Give every file of a folder, already on the disk, a second name in a new one, and return once it is on the disk.

    Where the file system has one name for a file, files are copied.
    """
    shutil.copytree(folder, target, symlinks=True, copy_function=_link_or_copy)
    for here, _, _ in os.walk(target):
        sync_names(Path(here))


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in _UNLINKABLE:
            raise
        shutil.copy2(source, target)
        sync_file(Path(target))


def publish_folder(draft: Path, target: Path) -> bool:
    """Give a complete folder its name by one rename, and return once both are on the disk.

    Args:
        draft: The folder; not empty.
        target: The name, on the same file system.

    Returns:
        Whether it has the name now. False: another folder was first, and the draft is as it was or gone.
    """
    sync_folder(draft)
    try:
        draft.rename(target)
    except FileNotFoundError:
        if target.is_dir():  # a server did it, and was asked again
            return False
        raise
    except OSError as error:
        if error.errno not in _TAKEN:
            raise
        return False
    sync_names(target.parent)
    return True
