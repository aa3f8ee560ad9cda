"""Threads as clients of a network file system: no `flock`, and what others change in a folder is seen late.

As under NFS, listings and attributes are cached for a while. A client's own changes empty its cache for the folders
they touch. The server creates, links and renames at once; reading and writing of an open file is not cached.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

_CHANGES = ("rename", "replace", "mkdir", "rmdir", "unlink", "remove", "link")


class NfsClients:
    """Every thread that calls `join` becomes a client.

    Args:
        late: Seconds for which a client keeps what it has seen.
        patch: Undone by the caller.
    """

    def __init__(self, late: float, patch: pytest.MonkeyPatch) -> None:
        self._late, self._here = late, threading.local()
        self.stale = 0
        for name in ("listdir", "stat"):
            patch.setattr(os, name, self._cached(getattr(os, name)))
        for name in _CHANGES:
            patch.setattr(os, name, self._changing(getattr(os, name)))
        patch.setattr(fcntl, "flock", _refuse)

    def join(self) -> None:
        self._here.seen = {}

    def _cached(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def look(path: Any = ".", **options: Any) -> Any:
            seen = getattr(self._here, "seen", None)
            if seen is None or isinstance(path, int) or options.get("dir_fd") is not None:
                return original(path, **options)
            key = (original.__name__, os.fspath(path))
            at, found = seen.get(key, (-self._late, None))
            if time.monotonic() - at > self._late:
                found = _outcome(original, path, options)
                seen[key] = time.monotonic(), found
            else:
                self.stale += repr(found) != repr(_outcome(original, path, options))
            if isinstance(found, OSError):
                raise OSError(found.errno, found.strerror, os.fspath(path))
            return found

        return look

    def _changing(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def change(*paths: Any, **options: Any) -> Any:
            done = original(*paths, **options)
            seen = getattr(self._here, "seen", {})
            touched = [os.fspath(path) for path in paths if isinstance(path, str | os.PathLike)]
            for key in list(seen):
                if any(key[1] == os.path.dirname(path) or key[1].startswith(path) for path in touched):
                    del seen[key]
            return done

        return change


def _outcome(original: Callable[..., Any], path: Any, options: dict[str, Any]) -> Any:
    try:
        return original(path, **options)
    except OSError as error:
        return error


def _refuse(*_: object) -> None:
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
