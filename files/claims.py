"""Claims: the right to write to a folder, without locks of the file system.

A claim is a numbered file in the folder that only one process can create (`claim_files`). Its holder rewrites it at
every heartbeat. A claim that was released, whose holder has ended, or whose heartbeat has stopped for a lease, is
followed by whoever creates the next number; the highest number holds. Clocks are not compared: a waiting process
measures the silence with its own.

A holder that was taken for dead may still run. So a claim alone protects nothing: whoever writes under it uses names of
its own, publishes by one rename, and calls `check` before.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from vcpo_bench.files.claim_files import (
    claim_path,
    create,
    create_with_folder,
    is_signed,
    names_in,
    numbers,
    numbers_in,
    release,
    rewrite,
    text_of,
)
from vcpo_bench.files.claim_text import Claimed
from vcpo_bench.files.lock_holders import this_process
from vcpo_bench.files.missing import is_missing

LEASE_SECONDS = float(os.environ.get("VCPO_BENCH_LEASE_SECONDS", "120"))
"""A claim without a heartbeat for this long may be taken over. Network file systems show changes late, up to a minute:
the lease must be longer."""
BEATS = 12
"""Heartbeats per lease."""
PATIENCE_SECONDS = 10.0
"""How long a process waits for a claim before it says who holds it."""

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
        watch: What earlier tries have seen of the claim: it is tried once more, without waiting. None: no such tries.

    Attributes:
        token: Different for every claim ever made; hexadecimal digits.
        note: What to publish with the next heartbeat; JSON values.
    """

    def __init__(
        self,
        folder: Path,
        say: Callable[[str], object] = lambda _: None,
        wait: bool = True,
        job: str = "",
        watch: ClaimHistory | None = None,
    ) -> None:
        self.folder, self._say, self._wait, self._job, self._watch = folder, say, wait, job, watch
        self._claimed = Claimed(this_process(), job)
        self.token = self._claimed.holder.token
        self.note: dict[str, Any] = {}
        self._number = 0
        self._ended = threading.Event()
        self._beating: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Hold the claim.

        Raises:
            ClaimHeldError: Another process holds it and is at work, and `wait` is False; or it may be, and `watch` is
                given.
            OSError: The file cannot be created, or the folder around `folder` is gone.
        """
        began, told, pause = time.monotonic(), False, _SHORTEST
        watch = self._watch or ClaimHistory()
        while not self._try(watch):
            if self._watch or (not self._wait and watch.lives):
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
        release(self.folder, self._number, self._claimed)

    def check(self) -> None:
        """Make sure that it is still held.

        Raises:
            ClaimLostError: Another process has taken it over.
        """
        held = is_signed(claim_path(self.folder, self._number), self.token)
        if not held or numbers_in(self.folder)[-1:] != [self._number]:
            raise ClaimLostError(f"{self.folder} was taken over by another process")

    def _try(self, watch: ClaimHistory) -> bool:
        try:
            return self._try_once(watch)
        except OSError as error:
            if not is_missing(error) or not self.folder.parent.is_dir():  # nobody will make what the folder was in
                raise
            return False  # the folder has just been removed

    def _try_once(self, watch: ClaimHistory) -> bool:
        names = names_in(self.folder)
        if not names:
            self._number = create_with_folder(self.folder, self._claimed)
            return self._number > 0
        present = numbers(names)
        if present and not watch.is_abandoned(claim_path(self.folder, present[-1]), self._job):
            return False
        self._number = present[-1] + 1 if present else 1
        if not create(self.folder, self._number, self._claimed):
            return False
        if numbers_in(self.folder)[-1:] != [self._number]:  # what was listed before was out of date
            claim_path(self.folder, self._number).unlink(missing_ok=True)
            return False
        for number in present:
            claim_path(self.folder, number).unlink(missing_ok=True)
        return True

    def _beat(self) -> None:
        while not self._ended.wait(LEASE_SECONDS / BEATS):
            self._claimed.beat += 1
            self._claimed.note = dict(self.note)
            with suppress(OSError):  # it was taken over, or the disk does not answer: the next `check` tells
                rewrite(claim_path(self.folder, self._number), self._claimed)


class ClaimHistory:
    """What a process that waits for a claim has seen of it."""

    def __init__(self) -> None:
        self._seen: tuple[Path, str] | None = None
        self._looked = time.monotonic()
        self._silent = 0.0
        self.lives = False

    def is_abandoned(self, path: Path, job: str) -> bool:
        """Whether a claim may be taken over; to be asked again and again."""
        seen, now = (path, text_of(path)), time.monotonic()
        found = Claimed.read(seen[1])
        if seen != self._seen:
            self.lives = self.lives or (self._seen is not None and self._seen[0] == path and bool(seen[1]))
            self._seen, self._silent = seen, 0.0
        else:  # a process that was itself stopped has not watched
            self._silent += min(now - self._looked, _LONGEST_LOOK)
        self._looked = now
        if found and found.released:
            return True
        if found and found.holder.is_here:
            self.lives = not found.holder.is_gone
            return found.holder.is_gone or self._silent > LEASE_SECONDS
        return bool(found and job and found.job == job) or self._silent > LEASE_SECONDS

    def holder(self) -> str:
        """Who holds it, in words."""
        found = Claimed.read(self._seen[1]) if self._seen else None
        return found.holder.described() if found else "a process that did not sign"


def claimed(folder: Path) -> Claimed | None:
    """What the claim on a folder says; None: nobody holds one, or it is being written at this moment."""
    present = numbers_in(folder)
    found = Claimed.read(text_of(claim_path(folder, present[-1]))) if present else None
    return None if found is None or found.released else found
