"""Files replaced as a whole: whatever happens, a reader meets the old file or the new one, never half of either."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vcpo_bench.files.durable import sync_file, sync_names


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Write to the yielded draft; it takes the place of `path` when the block ends, and is removed when it raises.

    Contents and name are on the disk then: a power loss leaves the old file before, and the new one after.

    A link is followed, and the permissions of the file it replaces are kept. A device or pipe is written directly.

    Args:
        path: The file; its folder must exist.

    Yields:
        A path beside the file, without its suffix.

    Raises:
        OSError: The file cannot be written; the error names `path`.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    target = path.resolve()
    draft = _draft(target)
    try:
        yield draft
        if target.exists():
            shutil.copymode(target, draft)
        sync_file(draft)
        draft.replace(target)
        sync_names(target.parent)
    except OSError as error:
        if error.errno is None or error.filename not in (None, str(draft)):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        draft.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Check that a file can be written later, and leave nothing behind.

    Raises:
        OSError: It cannot.
    """
    if path.exists() and not path.is_file():
        with path.open("ab"):
            return
    draft = _draft(path.resolve())
    draft.touch()
    draft.unlink()


def write_bytes(path: Path, content: bytes) -> None:
    """Replace a file as a whole; see `replacing` for the errors."""
    with replacing(path) as draft:
        draft.write_bytes(content)


def write_text(path: Path, content: str) -> None:
    """Replace a UTF-8 text file as a whole; see `replacing` for the errors."""
    write_bytes(path, content.encode("utf-8"))


def _draft(target: Path) -> Path:
    return target.with_name(f".{target.name}.{os.getpid()}.draft")
