"""Claims as files: their names, how one process creates one, and how only its holder rewrites it.

A number is never used twice, whatever is removed in between: a process that was stopped for long may still act on what
it saw, and must not meet another's claim under the name of its own. Within a folder, numbers rise; the newest claim
stays there, released, while anything else does. A folder made anew begins at the time in nanoseconds.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from vcpo_bench.errors import DamagedResultError
from vcpo_bench.files.claim_text import SIZE, Claimed
from vcpo_bench.files.missing import is_missing, unless_missing
from vcpo_bench.files.regular import open_regular

PREFIX = ".claim-"

_TAKEN = {errno.EEXIST, errno.ENOTEMPTY}


def is_claim(name: str) -> bool:
    """Whether a file of that name is a claim."""
    return re.fullmatch(rf"{re.escape(PREFIX)}[0-9]{{8,20}}", name) is not None


def claim_path(folder: Path, number: int) -> Path:
    """The file of a claim."""
    return folder / f"{PREFIX}{number:08d}"


def names_in(folder: Path) -> list[str]:
    """Names in a folder; none where there is no folder."""
    with unless_missing():
        return os.listdir(folder)
    return []


def numbers(names: Sequence[str]) -> list[int]:
    """Numbers of the claims among the names in a folder, smallest first."""
    return sorted(int(name.removeprefix(PREFIX)) for name in names if is_claim(name))


def numbers_in(folder: Path) -> list[int]:
    """Numbers of the claims in a folder, smallest first; the last one holds."""
    return numbers(names_in(folder))


def text_of(path: Path) -> str:
    """What a claim says; empty where it cannot be read."""
    try:
        with open_regular(path) as file:
            return file.read(SIZE).decode(errors="replace")
    except (OSError, DamagedResultError):
        return ""


def is_signed(path: Path, token: str) -> bool:
    """Whether a claim is that of the holder with this token."""
    found = Claimed.read(text_of(path))
    return found is not None and found.holder.token == token


def create(folder: Path, number: int, claimed: Claimed) -> bool:
    """Create a claim with its text, or not at all where that number exists; a link gives it both at once.

    Raises:
        OSError: It cannot be created; the folder is missing, say.
    """
    path, draft = claim_path(folder, number), folder / f".{claimed.holder.token}.draft"
    try:
        draft.write_bytes(claimed.bytes())
        try:
            os.link(draft, path)
        except FileExistsError:
            return is_signed(path, claimed.holder.token)  # a server may answer a request that was sent twice
        except OSError as error:
            if is_missing(error):
                raise
            return _create_without_links(path, claimed.bytes())
    finally:
        with unless_missing():
            draft.unlink()
    return True


def create_with_folder(folder: Path, claimed: Claimed) -> int:
    """Create a claim with the folder around it, by one rename, which only an empty folder or none gives way to.

    Returns:
        Its number; 0: another process was first.

    Raises:
        OSError: They cannot be created; what the folder is to be in is missing, say.
    """
    number, token = time.time_ns(), claimed.holder.token
    draft = folder.with_name(f".{token}{folder.suffix}")
    try:
        draft.mkdir()
        claim_path(draft, number).write_bytes(claimed.bytes())
        draft.rename(folder)
    except OSError as error:
        if error.errno in _TAKEN or is_missing(error):
            if is_signed(claim_path(folder, number), token):
                return number  # a server did it, and was asked again
            if error.errno in _TAKEN:
                return 0
        raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return number


def rewrite(path: Path, claimed: Claimed) -> None:
    """Replace the text of a claim in place, if it is that of `claimed.holder`: no file ever changes its owner.

    Raises:
        OSError: It is gone, or the disk does not answer.
    """
    handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = Claimed.read(os.pread(handle, SIZE, 0).decode(errors="replace"))
        if found is not None and found.holder.token == claimed.holder.token:
            os.pwrite(handle, claimed.bytes(), 0)
    finally:
        os.close(handle)


def release(folder: Path, number: int, claimed: Claimed) -> None:
    """Give a claim back. It stays, marked, for the sake of its number, unless nothing else is in the folder."""
    path = claim_path(folder, number)
    with suppress(OSError):  # it was taken over, or the disk does not answer: then it falls silent
        if set(names_in(folder)) - {path.name}:
            claimed.released = True
            rewrite(path, claimed)
        else:
            if is_signed(path, claimed.holder.token):
                path.unlink()
            folder.rmdir()


def _create_without_links(path: Path, content: bytes) -> bool:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except FileExistsError:
        return False
    try:
        os.write(handle, content)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(handle)
    return True
