"""Threads as machines that share a network file system: no `flock`, and what others change is seen late.

As under NFS, listings, attributes and what a name stands for are cached for a while. So a new file cannot be opened
yet, a file in whose place another was put still is the old one, and one that was removed is stale. A machine's own
changes empty its cache for the folders they touch, and so does opening a folder. The server creates, links and renames
at once; reading and writing of an open file is not cached.
"""

from __future__ import annotations

import builtins
import errno
import fcntl
import io
import os
import socket
import stat
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from vcpo_bench.files import lock_holders

_CHANGES = ("rename", "replace", "mkdir", "rmdir", "unlink", "remove", "link")


@dataclass(slots=True)
class _Machine:
    """One machine: what it has seen, by kind and path, and when."""

    name: str
    seen: dict[tuple[str, str], tuple[float, Any]] = field(default_factory=dict)
    busy: threading.RLock = field(default_factory=threading.RLock)
    runs: threading.Event = field(default_factory=threading.Event)

    def see(self, kind: str, path: str, found: Any) -> None:
        self.forget(lambda one: one == path, kind)
        self.seen[kind, path] = time.monotonic(), found

    def forget(self, which: Callable[[str], bool], kind: str = "") -> None:
        for key in [key for key in self.seen if kind in ("", key[0]) and which(key[1])]:
            found = self.seen.pop(key)[1]
            if isinstance(found, int):
                os.close(found)


class NfsClients:
    """Every thread that calls `join` becomes a machine, and so do the threads that it starts.

    Args:
        late: Seconds for which a machine keeps what it has seen.
        patch: Undone by the caller.

    Attributes:
        stale: How often something was seen that was no longer so, by kind: `names`, `stat` and `open`.
        before_change: Called in the thread of a machine that is about to change something.
    """

    def __init__(self, late: float, patch: pytest.MonkeyPatch) -> None:
        self._late, self._here = late, threading.local()
        self.stale: Counter[str] = Counter()
        self.before_change: Callable[[], None] = lambda: None
        self._scan, self._stat, self._open, self._read = os.scandir, os.stat, os.open, io.open
        self._listed = os.listdir
        patch.setattr(os, "scandir", self._scandir)
        patch.setattr(os, "listdir", self._listdir)
        patch.setattr(os, "stat", self._attributes)
        patch.setattr(os, "open", self._os_open)
        patch.setattr(io, "open", self._io_open)
        patch.setattr(builtins, "open", self._io_open)
        for name in _CHANGES:
            patch.setattr(os, name, self._changing(getattr(os, name)))
        patch.setattr(fcntl, "flock", _refuse)
        ours, host, start = lock_holders._machine, socket.gethostname, threading.Thread.start
        patch.setattr(lock_holders, "_machine", lambda: self._name(ours))
        patch.setattr(socket, "gethostname", lambda: self._name(host))
        patch.setattr(threading.Thread, "start", lambda thread: self._start(thread, start))

    def join(self, name: str = "node1") -> None:
        """Make this thread a machine of that name."""
        self._here.machine = _Machine(name)
        self._here.machine.runs.set()

    def stop_until(self, condition: Callable[[], bool]) -> None:
        """Stop this machine, with all of its threads, until something is so on the server, or for half a minute."""
        machine, deadline = self._here.machine, time.monotonic() + 30.0
        machine.runs.clear()
        self._here.machine = None
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.02)
        self._here.machine = machine
        machine.runs.set()

    def _start(self, thread: threading.Thread, start: Callable[[threading.Thread], None]) -> None:
        machine, run = self._machine(), thread.run

        def inherit() -> None:
            self._here.machine = machine
            run()

        if machine:
            thread.run = inherit  # type: ignore[method-assign]
        start(thread)

    def _machine(self) -> _Machine | None:
        """The machine of this thread, once it runs."""
        machine: _Machine | None = getattr(self._here, "machine", None)
        if machine:
            machine.runs.wait()
        return machine

    def _name(self, otherwise: Callable[[], str]) -> str:
        machine = self._machine()
        return machine.name if machine else otherwise()

    def _look(self, machine: _Machine, kind: str, path: str, fresh: Callable[[], Any]) -> Any:
        """What the machine sees; errors are raised."""
        at, found = machine.seen.get((kind, path), (-self._late, None))
        if time.monotonic() - at > self._late:
            found = _outcome(fresh)
            machine.see(kind, path, found)
        else:
            now = _outcome(fresh)
            if _identity(found) != _identity(now):
                self.stale[kind] += 1
            if isinstance(now, int):
                os.close(now)
        if isinstance(found, OSError):
            raise OSError(found.errno, found.strerror, path)
        return found

    def _entries(self, path: Any) -> list[os.DirEntry[str]]:
        def fresh() -> list[os.DirEntry[str]]:
            with self._scan(path) as found:
                return list(found)

        machine = self._machine()
        if machine is None or isinstance(path, int):
            return fresh()
        with machine.busy:
            return list(self._look(machine, "names", os.fspath(path), fresh))

    def _scandir(self, path: Any = ".") -> _Entries:
        return _Entries(self._entries(path))

    def _listdir(self, path: Any = ".") -> list[str]:
        return self._listed(path) if isinstance(path, int) else [entry.name for entry in self._entries(path)]

    def _attributes(self, path: Any, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> os.stat_result:
        machine = self._machine()
        if machine is None or isinstance(path, int) or dir_fd is not None or not follow_symlinks:
            return self._stat(path, dir_fd=dir_fd, follow_symlinks=follow_symlinks)
        with machine.busy:
            found: os.stat_result = self._look(machine, "stat", os.fspath(path), lambda: self._stat(path))
            return found

    def _through(self, machine: _Machine, path: str, reopen: Callable[[str], Any]) -> Any:
        """Open the file that a name stands for, as the machine sees it; `reopen` gets another name of it."""
        if ("stat", path) in machine.seen and isinstance(machine.seen["stat", path][1], OSError):
            self._look(machine, "stat", path, lambda: self._stat(path))  # it has just seen that there is none
        handle = self._look(machine, "open", path, lambda: self._open(path, os.O_PATH | os.O_CLOEXEC))
        if os.fstat(handle).st_nlink == 0:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), path)
        return reopen(f"/proc/self/fd/{handle}")

    def _os_open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        machine = self._machine()
        if machine is None or dir_fd is not None or flags & os.O_PATH:
            return self._open(path, flags, mode, dir_fd=dir_fd)
        name = os.fspath(path)
        with machine.busy:
            if flags & os.O_CREAT:
                self._changed(machine, name)
                return self._open(path, flags, mode)
            facts = _outcome(lambda: self._stat(path))
            if isinstance(facts, os.stat_result) and stat.S_ISDIR(facts.st_mode):
                machine.forget(lambda one: one == name or os.path.dirname(one) == name)
                return self._open(path, flags, mode)
            return int(self._through(machine, name, lambda other: self._open(other, flags & ~os.O_NOFOLLOW, mode)))

    def _io_open(self, file: Any, mode: str = "r", *more: Any, **options: Any) -> Any:
        machine = self._machine()
        if machine is None or isinstance(file, int):
            return self._read(file, mode, *more, **options)
        name = os.fspath(file)
        with machine.busy:
            if set(mode) & set("wax"):
                self._changed(machine, name)
                return self._read(file, mode, *more, **options)
            return self._through(machine, name, lambda other: self._read(other, mode, *more, **options))

    @staticmethod
    def _changed(machine: _Machine, path: str) -> None:
        machine.forget(lambda one: one == os.path.dirname(path) or one == path or one.startswith(f"{path}/"))

    def _changing(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def change(*paths: Any, **options: Any) -> Any:
            if machine := self._machine():
                self.before_change()
            done = original(*paths, **options)
            if machine:
                with machine.busy:
                    for path in _absolute(paths, options.get("dir_fd") or options.get("dst_dir_fd")):
                        self._changed(machine, path)
            return done

        return change


class _Entries:
    """What `os.scandir` returns."""

    def __init__(self, entries: list[os.DirEntry[str]]) -> None:
        self._left = iter(entries)

    def __iter__(self) -> Iterator[os.DirEntry[str]]:
        return self._left

    def __next__(self) -> os.DirEntry[str]:
        return next(self._left)

    def __enter__(self) -> _Entries:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._left = iter(())


def _absolute(paths: tuple[Any, ...], folder: int | None) -> list[str]:
    names = [os.fspath(path) for path in paths if isinstance(path, str | os.PathLike)]
    return [os.path.join(os.readlink(f"/proc/self/fd/{folder}"), name) for name in names] if folder else names


def _outcome(look: Callable[[], Any]) -> Any:
    try:
        return look()
    except OSError as error:
        return error


def _identity(found: Any) -> Any:
    """What must be the same for what was seen still to be so."""
    if isinstance(found, OSError):
        return found.errno
    if isinstance(found, list):
        return sorted(entry.name for entry in found)
    facts = os.fstat(found) if isinstance(found, int) else found
    return facts.st_ino, stat.S_IFMT(facts.st_mode), facts.st_nlink == 0


def _refuse(*_: object) -> None:
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
