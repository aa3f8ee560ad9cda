"""Where a verb writes, checked before the work begins: a report that cannot be kept must not be built first."""

from __future__ import annotations

import os
from pathlib import Path

from vcpo_bench.errors import UsageError


def check_file(flag: str, path: Path | None) -> None:
    """Refuse a file that cannot be written.

    Raises:
        UsageError: It is a folder or read-only, or its folder does not exist or is read-only.
    """
    if path is None:
        return
    if path.is_dir():
        raise UsageError(f"{flag} {path}: is a folder; give the name of a file")
    if not path.parent.is_dir():
        raise UsageError(f"{flag} {path}: the folder {path.parent} does not exist; create it or choose another")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"{flag} {path}: cannot be written; choose another file with {flag}")


def check_folder(flag: str, path: Path | None) -> None:
    """Refuse a folder that cannot be made or written to; it need not exist.

    Raises:
        UsageError: Its name is not UTF-8, or it, or the nearest folder above that exists, is a file or read-only.
    """
    if path is None:
        return
    try:
        str(path.absolute()).encode()
    except UnicodeEncodeError:  # what is recorded, as JSON and Parquet, is text
        raise UsageError(f"{flag} {str(path)!r}: the name is not UTF-8; choose another folder") from None
    nearest = next(parent for parent in (path, *path.absolute().parents) if parent.exists())
    if not nearest.is_dir():
        raise UsageError(f"{flag} {path}: {nearest} is a file; choose another folder")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise UsageError(f"{flag} {path}: cannot write to {nearest}; choose another folder")
