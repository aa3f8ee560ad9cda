"""A disk that forgets what was not synced: it watches `os.fsync`, and shows what a power loss would leave.

Contents survive only if their file was synced since. Of names that were not synced since, a real disk may keep any:
`STATES` are the extremes.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

STATES = ("nothing unsynced survives", "removals survive", "all names survive")


class LossyDisk:
    """Watches a folder that is on the disk; the caller undoes `patch`."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self._names: dict[int, dict[str, int]] = {}  # of a synced folder, by inode
        self._content: dict[int, bytes] = {}  # of a synced file
        self._open: dict[int, int] = {}  # a handle on every inode seen, so that its number is not used again
        self._folders: set[int] = set()
        self._sync = os.fsync
        patch.setattr(os, "fsync", self._watched)
        handle = os.open(root, os.O_RDONLY)
        self._root = os.fstat(handle).st_ino
        self._watched(handle)
        os.close(handle)

    def _watched(self, handle: int) -> None:
        facts = os.fstat(handle)
        if facts.st_ino not in self._open:
            self._open[facts.st_ino] = os.dup(handle)
        if stat.S_ISDIR(facts.st_mode):
            self._folders.add(facts.st_ino)
            self._names[facts.st_ino] = self._present(facts.st_ino)
        else:
            self._content[facts.st_ino] = Path(f"/proc/self/fd/{handle}").read_bytes()

    def _present(self, folder: int) -> dict[str, int]:
        """Names in a folder now, and their inodes; each inode is held from now on."""
        found = {}
        handle = self._open[folder]
        for name in os.listdir(handle):
            one = os.open(name, os.O_RDONLY, dir_fd=handle)
            facts = os.fstat(one)
            if stat.S_ISDIR(facts.st_mode):
                self._folders.add(facts.st_ino)
            if self._open.setdefault(facts.st_ino, one) != one:
                os.close(one)
            found[name] = facts.st_ino
        return found

    def after_power_loss(self, state: str, to: Path) -> Path:
        """Write what a power loss now could leave into a new folder."""
        self._write(self._root, state, to)
        return to

    def _write(self, folder: int, state: str, to: Path) -> None:
        to.mkdir()
        present = self._present(folder)
        kept = self._names.get(folder, {})
        names = {
            "nothing unsynced survives": kept,
            "removals survive": {name: inode for name, inode in kept.items() if present.get(name) == inode},
            "all names survive": present,
        }[state]
        for name, inode in names.items():
            if inode in self._folders:
                self._write(inode, state, to / name)
            else:
                (to / name).write_bytes(self._content.get(inode, b""))

    def close(self) -> None:
        """Release the handles."""
        for handle in self._open.values():
            os.close(handle)
