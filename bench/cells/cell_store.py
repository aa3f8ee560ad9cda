"""The folder of one running cell: its lock, its checkpoints, and how it becomes the folder of an ended cell.

Every change of state is one rename, so a process killed at any point leaves either the old state or the new one.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from vcpo_bench.bench.cells.results_folder import LOCK_FILE, damage, read_json
from vcpo_bench.records import CELL_FILE, PARTIAL_SUFFIX

CHECKPOINT = "checkpoint-"
"""Name of a checkpoint's folder, before the number of updates done."""


class CellStore:
    """The folder of one cell while it runs, and the one it becomes when the cell ends.

    Args:
        cells: The folder `cells` of a results folder.
        key: The cell's key.
    """

    def __init__(self, cells: Path, key: str) -> None:
        self.final = cells / key
        self.partial = cells / f"{key}{PARTIAL_SUFFIX}"

    @contextmanager
    def open(self) -> Iterator[None]:
        """Lock the partial folder inside the block, after any worker that outlived its killed parent."""
        handle = self._locked()
        with handle:
            self._put_back()
            yield

    def _locked(self) -> TextIO:
        """The lock file of the partial folder, locked; not that of a folder that was removed while waiting."""
        while True:
            self.partial.mkdir(exist_ok=True)
            path = self.partial / LOCK_FILE
            handle = path.open("w")
            fcntl.flock(handle, fcntl.LOCK_EX)
            if path.exists() and os.fstat(handle.fileno()).st_ino == path.stat().st_ino:
                return handle
            handle.close()

    def _put_back(self) -> None:
        """Undo a `finish` that was killed halfway: kept checkpoints return to where training looks for them."""
        moved, kept = self.partial / "final" / "checkpoints", self.partial / "checkpoints"
        if moved.is_dir() and not kept.exists():
            moved.rename(kept)

    def ended(self) -> str | None:
        """Status of the cell if it ended without an error while this process waited for the lock."""
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
        """Rename a checkpoint that cannot be read, so that no run resumes from it."""
        aside = checkpoint.with_name(f"damaged-{checkpoint.name}")
        shutil.rmtree(aside, ignore_errors=True)
        return checkpoint.rename(aside)

    @contextmanager
    def checkpoint(self, step: int) -> Iterator[Path]:
        """Write to the yielded folder; it becomes the latest checkpoint when the block ends, replacing older ones."""
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
        """Let `save` write a numbered checkpoint that stays with the results."""
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
        """Write the final files to the yielded folder; the cell has ended when the block ends."""
        draft, kept = self.partial / "final", self.partial / "checkpoints"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        yield draft
        if kept.is_dir():
            kept.rename(draft / "checkpoints")
        for file in draft.glob("*.*"):
            _flush(file)
        replaced = self.partial / "replaced"
        if self.final.exists():  # a failed or damaged run of this cell is replaced only now
            self.final.rename(replaced)
        draft.rename(self.final)
        shutil.rmtree(self.partial)


def _flush(path: Path) -> None:
    with path.open("rb") as handle:
        os.fsync(handle.fileno())
