"""The results folder: who may write it, which cells have ended, and how a cell goes from running to ended.

Every change of state is one rename, so a process killed at any instant leaves either the old state or the new one.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, get_args

import pyarrow as pa
import pyarrow.parquet as pq

from vcpo_bench.errors import DamagedResultError, UsageError
from vcpo_bench.records import CELL_FILE, CELLS, EVALS_FILE, GRID_FILE, LAGS_FILE, PARTIAL_SUFFIX, STEPS_FILE, Status

LOCK_FILE = ".lock"
CHECKPOINT = "checkpoint-"


class ResultsFolder:
    """A results folder opened for writing.

    Args:
        path: The folder; made if missing.

    Raises:
        UsageError: The path is a file, cannot be written, or is a non-empty folder of something else.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cells = path / CELLS
        try:
            if path.is_dir() and any(path.iterdir()) and not ((path / GRID_FILE).exists() or self.cells.is_dir()):
                raise UsageError(
                    f"--out {path}: the folder holds something else; name a new or an earlier results folder"
                )
            self.cells.mkdir(parents=True, exist_ok=True)
            probe = path / f".write-{os.getpid()}"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise UsageError(f"--out {path}: cannot write there ({error.strerror}); name another folder") from error

    @contextmanager
    def locked(self, wait: bool) -> Iterator[None]:
        """Hold the folder for this process; the lock goes with the process, however it ends.

        Raises:
            UsageError: Another process holds it and `wait` is False.
        """
        with (self.path / LOCK_FILE).open("w") as handle:
            _lock(handle, wait, f"--out {self.path}: another run is writing there; add --wait to queue behind it")
            yield

    def status(self, key: str) -> str | None:
        """How the cell ended; None when it has not.

        Raises:
            DamagedResultError: It has ended, but its files cannot be read.
        """
        folder = self.cells / key
        if not folder.is_dir():
            return None
        problem = damage(folder)
        if problem:
            raise DamagedResultError(f"{folder}: {problem}")
        return str(read_json(folder / CELL_FILE)["status"])

    def set_aside(self, key: str) -> Path:
        """Move a damaged cell out of the way, keeping it, and say where it is now."""
        folder, number = self.cells / key, 1
        while (aside := self.path / "damaged" / f"{key}-{number}").exists():
            number += 1
        aside.parent.mkdir(exist_ok=True)
        folder.rename(aside)
        return aside

    def update_grid(self, cells: Mapping[str, Mapping[str, Any]]) -> None:
        """Merge what was asked for into `grid.json`; a cell asked for by name stops being a mere control."""
        path = self.path / GRID_FILE
        known = self._known_cells(path)
        for key, entry in cells.items():
            control = bool(entry["control"]) and bool(known.get(key, {}).get("control", True))
            known[key] = {**entry, "control": control}
        write_json(path, {"cells": known})

    @staticmethod
    def _known_cells(path: Path) -> dict[str, Any]:
        """The cells of `grid.json`; a file that cannot be read is set aside, since every grid writes it anew."""
        try:
            return dict(read_json(path)["cells"])
        except FileNotFoundError:
            return {}
        except (KeyError, TypeError, ValueError):
            path.replace(path.with_name(f"damaged-{GRID_FILE}"))
            return {}


class CellStore:
    """The folder of one cell while it runs.

    Args:
        cells: The `cells` folder.
        key: The cell's key.
    """

    def __init__(self, cells: Path, key: str) -> None:
        self.final = cells / key
        self.partial = cells / f"{key}{PARTIAL_SUFFIX}"

    @contextmanager
    def open(self) -> Iterator[None]:
        """Hold the partial folder; a worker that outlived its killed parent is waited for."""
        handle = self._locked()
        with handle:
            self._put_back()
            yield

    def _locked(self) -> TextIO:
        """The locked lock file of the partial folder as it is now, not of one that was removed while waiting."""
        while True:
            self.partial.mkdir(exist_ok=True)
            path = self.partial / LOCK_FILE
            handle = path.open("w")
            fcntl.flock(handle, fcntl.LOCK_EX)
            if path.exists() and os.fstat(handle.fileno()).st_ino == path.stat().st_ino:
                return handle
            handle.close()

    def _put_back(self) -> None:
        """Undo the half of `finish` that a kill left: kept checkpoints return to where training looks for them."""
        moved, kept = self.partial / "final" / "checkpoints", self.partial / "checkpoints"
        if moved.is_dir() and not kept.exists():
            moved.rename(kept)

    def ended(self) -> str | None:
        """Status of the cell if it ended well while this process waited for it."""
        if not self.final.is_dir() or damage(self.final) is not None:
            return None
        status = str(read_json(self.final / CELL_FILE)["status"])
        return None if status == "error" else status

    def clear(self) -> None:
        """Remove the partial folder of a cell that has ended."""
        shutil.rmtree(self.partial, ignore_errors=True)

    def latest_checkpoint(self) -> Path | None:
        """The newest complete checkpoint, or None."""
        found = sorted(p for p in self.partial.glob(f"{CHECKPOINT}[0-9]*") if p.is_dir())
        return found[-1] if found else None

    def set_checkpoint_aside(self, checkpoint: Path) -> Path:
        """Rename a checkpoint that cannot be read, so that it is no longer taken up."""
        aside = checkpoint.with_name(f"damaged-{checkpoint.name}")
        shutil.rmtree(aside, ignore_errors=True)
        return checkpoint.rename(aside)

    @contextmanager
    def checkpoint(self, step: int) -> Iterator[Path]:
        """Write into the yielded folder; it becomes the latest checkpoint when the block ends, and older ones go."""
        draft = self.partial / "draft"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        yield draft
        target = self.partial / f"{CHECKPOINT}{step:08d}"
        shutil.rmtree(target, ignore_errors=True)
        draft.rename(target)
        for old in self.partial.glob(f"{CHECKPOINT}[0-9]*"):
            if old.name < target.name:
                shutil.rmtree(old)

    def keep(self, step: int, save: Callable[[Path], None]) -> None:
        """Have `save` write a numbered checkpoint that stays with the results."""
        target = self.partial / "checkpoints" / f"{step:08d}"
        if target.is_dir():
            return
        draft = self.partial / "checkpoints" / "draft"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        save(draft)
        draft.rename(target)

    @contextmanager
    def finish(self) -> Iterator[Path]:
        """Write the final files into the yielded folder; the cell counts as ended when the block ends."""
        draft, kept = self.partial / "final", self.partial / "checkpoints"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        yield draft
        if kept.is_dir():
            kept.rename(draft / "checkpoints")
        for file in draft.glob("*.*"):
            _flush(file)
        replaced = self.partial / "replaced"
        if self.final.exists():  # a failed run of this cell, or a damaged one, gives way only now
            self.final.rename(replaced)
        draft.rename(self.final)
        shutil.rmtree(self.partial)


def ended_keys(path: Path) -> set[str]:
    """Keys of the cells of a results folder that have ended well; empty where there is no folder."""
    folders = [p for p in (path / CELLS).glob("*") if not p.name.endswith(PARTIAL_SUFFIX)]
    return {p.name for p in folders if damage(p) is None and read_json(p / CELL_FILE)["status"] != "error"}


def damage(folder: Path) -> str | None:
    """What is wrong with an ended cell's folder, in one phrase; None when all its files can be read."""
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
    """A JSON object from a file.

    Raises:
        ValueError: The file is not JSON, or not an object.
    """
    value = json.loads(path.read_text())
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write JSON so that a reader sees the old file or the new one, never half of it."""
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n")
    draft.replace(path)


def _lock(handle: TextIO, wait: bool, refusal: str) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError as error:
        raise UsageError(refusal) from error


def _flush(path: Path) -> None:
    with path.open("rb") as handle:
        os.fsync(handle.fileno())
