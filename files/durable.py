"""What must survive a power loss: contents and names pushed from memory to the disk."""

from __future__ import annotations

import os
from pathlib import Path


def sync_file(path: Path) -> None:
    """Return once the contents of a file are on the disk."""
    _sync(path, os.O_RDONLY)


def sync_names(folder: Path) -> None:
    """Return once the names in a folder are on the disk: what was created, renamed or removed there."""
    _sync(folder, os.O_RDONLY | os.O_DIRECTORY)


def sync_folder(folder: Path) -> None:
    """Return once the files directly in a folder are on the disk, contents and names."""
    for path in sorted(folder.iterdir()):
        if path.is_file():
            sync_file(path)
    sync_names(folder)


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
