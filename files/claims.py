"""Claims: the right to write to a folder, without locks of the file system.

A claim is a numbered file in the folder that only one process can create. Its holder rewrites it at every heartbeat. A
claim whose holder has ended, or whose heartbeat has stopped for a lease, is taken over by whoever creates the next
number; the highest number holds. Clocks are not compared: a waiting process measures the silence with its own.

A holder that was taken for dead may still run. So a claim alone protects nothing: whoever writes under it uses names of
its own, publishes by one rename, and calls `check` before.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from vcpo_bench.files.claim_text import SIZE, Claimed
from vcpo_bench.files.lock_holders import this_process

LEASE_SECONDS = float(os.environ.get("VCPO_BENCH_LEASE_SECONDS", "120"))
"""A claim without a heartbeat for this long may be taken over. Network file systems show changes late, up to a minute:
the lease must be longer."""
BEATS = 12
"""Heartbeats per lease."""
PATIENCE_SECONDS = 10.0
"""How long a process waits for a claim before it says who holds it."""
PREFIX = ".claim-"

_SHORTEST, _LONGEST = 0.05, 1.0
_LONGEST_LOOK = 5.0


class ClaimHeldError(Exception):
    """Another process holds the claim; the message says which."""


class ClaimLostError(Exception):
    """Another process has taken the claim over: what was done under it must be discarded."""


class Claim:
    """The right to write to a folder, held inside a `with` block.

    Args:
        folder: The folder; created if missing. It may be removed while others wait: they then create it again.
        say: Called with one line, which says who holds the claim, when waiting takes long.
        wait: Wait for another process that holds it, as long as it takes.
        job: Name of the scheduler's job this process runs in. A claim that the same job made on another machine is
            taken over at once: the scheduler has started the job again. Empty: no job.

    Attributes:
        token: Different for every claim ever made; hexadecimal digits.
        note: What to publish with the next heartbeat; JSON values.
    """

    def __init__(
        self, folder: Path, say: Callable[[str], object] = lambda _: None, wait: bool = True, job: str = ""
    ) -> None:
        self.folder, self._say, self._wait, self._job = folder, say, wait, job
        self._claimed = Claimed(this_process(), job)
        self.token = self._claimed.holder.token
        self.note: dict[str, Any] = {}
        self._number = 0
        self._ended = threading.Event()
        self._beating: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Hold the claim.

        Raises:
            ClaimHeldError: Another process holds it and is at work, and `wait` is False.
            OSError: The file cannot be created, or the folder around `folder` is gone.
        """
        began, told, pause = time.monotonic(), False, _SHORTEST
        watch = _Watch()
        while not self._try(watch):
            if not self._wait and watch.lives:
                raise ClaimHeldError(watch.holder())
            if not told and time.monotonic() - began > PATIENCE_SECONDS:
                self._say(f"waiting for {watch.holder()}, which works on {self.folder}")
                told = True
            time.sleep(pause)
            pause = min(_LONGEST, 1.1 * pause)
        self._beating = threading.Thread(target=self._beat, daemon=True)
        self._beating.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Release it, and remove the folder if nothing else is in it."""
        self._ended.set()
        if self._beating:
            self._beating.join()
        if self._is_ours():
            self._path(self._number).unlink(missing_ok=True)
        with suppress(OSError):
            self.folder.rmdir()

    def check(self) -> None:
        """Make sure that it is still held.

        Raises:
            ClaimLostError: Another process has taken it over.
        """
        if not self._is_ours() or _numbers(self.folder)[-1:] != [self._number]:
            raise ClaimLostError(f"{self.folder} was taken over by another process")

    def _is_ours(self) -> bool:
        found = Claimed.read(_text(self._path(self._number)))
        return found is not None and found.holder.token == self.token

    def _path(self, number: int) -> Path:
        return self.folder / f"{PREFIX}{number:08d}"

    def _try(self, watch: _Watch) -> bool:
        try:
            return self._try_once(watch)
        except FileNotFoundError:  # the folder has just been removed
            if not self.folder.parent.is_dir():  # and what it was in as well: nobody will make it again
                raise
            return False

    def _try_once(self, watch: _Watch) -> bool:
        self.folder.mkdir(exist_ok=True)
        present = _numbers(self.folder)
        if present and not watch.is_abandoned(self._path(present[-1]), self._job):
            return False
        self._number = present[-1] + 1 if present else 1
        if not self._create(self._path(self._number)):
            return False
        if _numbers(self.folder)[-1:] != [self._number]:  # what was listed before was out of date
            self._path(self._number).unlink(missing_ok=True)
            return False
        for number in present:
            self._path(number).unlink(missing_ok=True)
        return True

    def _create(self, path: Path) -> bool:
        """Create the claim with its text, or not at all where it exists; a link gives it both at once."""
        draft = path.with_name(f".{self.token}.draft")
        try:
            draft.write_bytes(self._claimed.bytes())
            try:
                os.link(draft, path)
            except FileExistsError:
                return self._is_ours()  # a server may answer a request that was sent twice
            except OSError:  # this file system has no hard links
                return _create_without_links(path, self._claimed.bytes())
        finally:
            draft.unlink(missing_ok=True)
        return True

    def _beat(self) -> None:
        while not self._ended.wait(LEASE_SECONDS / BEATS):
            self._claimed.beat += 1
            self._claimed.note = dict(self.note)
            with suppress(OSError):  # it was taken over, or the disk does not answer: the next `check` tells
                handle = os.open(self._path(self._number), os.O_WRONLY | os.O_CLOEXEC)
                try:
                    os.pwrite(handle, self._claimed.bytes(), 0)
                finally:
                    os.close(handle)


class _Watch:
    """What a waiting process has seen of a claim."""

    def __init__(self) -> None:
        self._seen: tuple[Path, str] | None = None
        self._looked = time.monotonic()
        self._silent = 0.0
        self.lives = False

    def is_abandoned(self, path: Path, job: str) -> bool:
        """Whether a claim may be taken over; to be asked again and again."""
        seen, now = (path, _text(path)), time.monotonic()
        found = Claimed.read(seen[1])
        if seen != self._seen:
            self.lives = self.lives or (self._seen is not None and self._seen[0] == path and bool(seen[1]))
            self._seen, self._silent = seen, 0.0
        else:  # a process that was itself stopped has not watched
            self._silent += min(now - self._looked, _LONGEST_LOOK)
        self._looked = now
        if found and found.holder.is_here:
            self.lives = not found.holder.is_gone
            return found.holder.is_gone or self._silent > LEASE_SECONDS
        return bool(found and job and found.job == job) or self._silent > LEASE_SECONDS

    def holder(self) -> str:
        found = Claimed.read(self._seen[1]) if self._seen else None
        return found.holder.described() if found else "a process that did not sign"


class Look:
    """Tells whether somebody holds the claim on a folder, for a process that does not want it.

    Args:
        folder: The folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._watch = folder, _Watch()

    def sees_holder(self) -> bool:
        """Whether somebody does, as far as is known; to be asked again and again."""
        numbers = _numbers(self._folder)
        return bool(numbers) and not self._watch.is_abandoned(self._folder / f"{PREFIX}{numbers[-1]:08d}", "")


def claimed(folder: Path) -> Claimed | None:
    """What the claim on a folder says; None: nobody holds one, or it is being written at this moment."""
    numbers = _numbers(folder)
    return Claimed.read(_text(folder / f"{PREFIX}{numbers[-1]:08d}")) if numbers else None


def is_claim(name: str) -> bool:
    """Whether a file of that name is a claim."""
    return re.fullmatch(rf"{re.escape(PREFIX)}[0-9]{{8}}", name) is not None


def _numbers(folder: Path) -> list[int]:
    with suppress(FileNotFoundError):
        return sorted(int(name.removeprefix(PREFIX)) for name in os.listdir(folder) if is_claim(name))
    return []


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


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(SIZE).decode(errors="replace")
    except OSError:
        return ""
