"""A results folder: who may write to it, which cells have ended, and which are damaged."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, get_args

import pyarrow as pa
import pyarrow.parquet as pq

from vcpo_bench.errors import DamagedResultError, UsageError
from vcpo_bench.records import CELL_FILE, CELLS, EVALS_FILE, GRID_FILE, LAGS_FILE, PARTIAL_SUFFIX, STEPS_FILE, Status

LOCK_FILE = ".lock"
"""Locked by the process that writes to a results folder, or to the folder of a running cell."""


class ResultsFolder:
    """A results folder opened for writing.

    Args:
        path: The folder; created if missing.

    Raises:
        UsageError: The path is a file, cannot be written, or is a folder with other contents.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cells = path / CELLS
        try:
            if path.is_dir() and any(path.iterdir()) and not ((path / GRID_FILE).exists() or self.cells.is_dir()):
                raise UsageError(f"--out {path}: the folder holds other files; name a new folder or a results folder")
            self.cells.mkdir(parents=True, exist_ok=True)
            probe = path / f".write-{os.getpid()}"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise UsageError(f"--out {path}: cannot write there ({error.strerror}); name another folder") from error

    @contextmanager
    def locked(self, wait: bool) -> Iterator[None]:
        """Lock the folder inside the block; the lock is released with the process, however it ends.

        Args:
            wait: Wait for another process that holds the lock.

        Raises:
            UsageError: Another process holds the lock, and `wait` is False.
        """
        with (self.path / LOCK_FILE).open("w") as handle:
            _lock(handle, wait, f"--out {self.path}: another run is writing there; add --wait to queue behind it")
            yield

    def status(self, key: str) -> str | None:
        """Status of a cell that has ended; None if it has not.

        Raises:
            DamagedResultError: The cell has ended, but its files cannot be read.
        """
        folder = self.cells / key
        if not folder.is_dir():
            return None
        problem = damage(folder)
        if problem:
            raise DamagedResultError(f"{folder}: {problem}")
        return str(read_json(folder / CELL_FILE)["status"])

    def set_aside(self, key: str) -> Path:
        """Move a damaged cell to the folder `damaged`; returns where it is now."""
        folder, number = self.cells / key, 1
        while (aside := self.path / "damaged" / f"{key}-{number}").exists():
            number += 1
        aside.parent.mkdir(exist_ok=True)
        folder.rename(aside)
        return aside

    def update_grid(self, cells: Mapping[str, Mapping[str, Any]]) -> None:
        """Merge cells into `grid.json`; a cell requested by name is no longer a control only."""
        path = self.path / GRID_FILE
        known = self._known_cells(path)
        for key, entry in cells.items():
            control = bool(entry["control"]) and bool(known.get(key, {}).get("control", True))
            known[key] = {**entry, "control": control}
        write_json(path, {"cells": known})

    @staticmethod
    def _known_cells(path: Path) -> dict[str, Any]:
        """The cells of `grid.json`; an unreadable file is renamed, since every grid writes it again."""
        try:
            return dict(read_json(path)["cells"])
        except FileNotFoundError:
            return {}
        except (KeyError, TypeError, ValueError):
            path.replace(path.with_name(f"damaged-{GRID_FILE}"))
            return {}


def ended_keys(path: Path) -> set[str]:
    """Keys of the cells of a results folder that have ended without an error; empty where there is no folder."""
    folders = [p for p in (path / CELLS).glob("*") if not p.name.endswith(PARTIAL_SUFFIX)]
    return {p.name for p in folders if damage(p) is None and read_json(p / CELL_FILE)["status"] != "error"}


def damage(folder: Path) -> str | None:
    """What is wrong with the folder of an ended cell, in one phrase; None if all its files can be read."""
    tables = {path.name for path in folder.glob("*.parquet")} | {STEPS_FILE, EVALS_FILE, LAGS_FILE}
    for name in (CELL_FILE, *sorted(tables)):
        try:
            if name != CELL_FILE:
                pq.read_table(folder / name)
                continue
            facts = read_json(folder / name)
            if facts.get("status") not in get_args(Status):
                return f"{name} has no legal status"
            if facts.get("key") != folder.name or not isinstance(facts.get("config"), dict):
                return f"{name} does not say what was run"
        except FileNotFoundError:
            return f"{name} is missing"
        except (OSError, ValueError, pa.ArrowException) as error:
            return f"{name} cannot be read ({str(error).splitlines()[0]})"
    return None


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        ValueError: The file is not JSON, or holds no object.
    """
    value = json.loads(path.read_text())
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write JSON atomically: a reader sees the old file or the new one."""
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n")
    draft.replace(path)


def _lock(handle: TextIO, wait: bool, refusal: str) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError as error:
        raise UsageError(refusal) from error
