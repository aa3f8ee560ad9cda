"""The folder of one running cell: its lock, its checkpoints, and how it becomes the folder of an ended cell.

Every change of state is one rename, so a process killed at any point leaves either the old state or the new one. What
a state replaces is removed only once the new one is on the disk, so a power loss does not cost both.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from vcpo_bench.bench.cells.results_folder import status_of
from vcpo_bench.errors import DamagedResultError
from vcpo_bench.files.durable import sync_folder, sync_names
from vcpo_bench.files.locks import LOCK_FILE, FileLock
from vcpo_bench.records import PARTIAL_SUFFIX

CHECKPOINT = "checkpoint-"
"""Name of a checkpoint's folder, before the number of updates done."""
KEPT = "checkpoints"
"""Folder of the numbered checkpoints that stay with the results."""


def numbered(folder: Path, prefix: str = "") -> dict[int, Path]:
    """Folders named `prefix` and a number, by that number, smallest first; other names are no checkpoints."""
    found = {int(path.name[len(prefix) :]): path for path in folder.glob(f"{prefix}*") if _is_numbered(path, prefix)}
    return dict(sorted(found.items()))


def _is_numbered(path: Path, prefix: str) -> bool:
    return re.fullmatch(r"[0-9]{1,12}", path.name[len(prefix) :]) is not None and path.is_dir()


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
    def open(self, say: Callable[[str], object] = lambda _: None) -> Iterator[None]:
        """Lock the partial folder inside the block, after any worker that outlived its killed parent.

        Args:
            say: Called with one line, which names that worker, when it takes long to end.
        """
        with FileLock(self.partial / LOCK_FILE, say):
            sync_names(self.partial.parent)
            self._put_back(self.partial / "final")  # of a `finish` that was killed halfway
            if self.ended() is None:
                self._put_back(self.final)  # of a run that failed
            yield

    def _put_back(self, folder: Path) -> None:
        """Return checkpoints to where training looks for them."""
        for path in (folder / KEPT, *numbered(folder, CHECKPOINT).values()):
            if path.is_dir() and not (self.partial / path.name).exists():
                path.rename(self.partial / path.name)

    def ended(self) -> str | None:
        """Status of the cell if it ended without an error while this process waited for the lock."""
        try:
            status = status_of(self.final)
        except DamagedResultError:
            return None
        return None if status == "error" else status

    def clear(self) -> None:
        """Remove the partial folder of a cell that has ended."""
        shutil.rmtree(self.partial, ignore_errors=True)

    def latest_checkpoint(self) -> Path | None:
        """The newest complete checkpoint, or None."""
        return next(reversed(numbered(self.partial, CHECKPOINT).values()), None)

    def checkpoints(self) -> list[Path]:
        """Every checkpoint that training can resume from, the kept ones too, newest first."""
        found = numbered(self.partial / KEPT) | numbered(self.partial, CHECKPOINT)
        return [found[step] for step in sorted(found, reverse=True)]

    def set_checkpoint_aside(self, checkpoint: Path) -> Path:
        """Rename a checkpoint that cannot be used, so that no run resumes from it."""
        aside = checkpoint.with_name(f"damaged-{checkpoint.name}")
        if aside.exists():
            shutil.rmtree(aside)
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
        self._put(draft, target)
        for known, old in numbered(self.partial, CHECKPOINT).items():
            if known < step:
                shutil.rmtree(old)

    def keep(self, step: int, save: Callable[[Path], None]) -> None:
        """Let `save` write a numbered checkpoint that stays with the results."""
        target = self.partial / KEPT / f"{step:08d}"
        if target.is_dir():
            return
        draft = target.with_name("draft")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        save(draft)
        self._put(draft, target)
        sync_names(self.partial)

    @contextmanager
    def finish(self, failed: bool = False) -> Iterator[Path]:
        """Write the final files to the yielded folder; the cell has ended when the block ends.

        Args:
            failed: The cell ended with an error: its latest checkpoint stays, and the next run resumes from it.
        """
        draft = self.partial / "final"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        yield draft
        resumable = numbered(self.partial, CHECKPOINT).values() if failed else ()
        for path in (self.partial / KEPT, *resumable):
            if path.is_dir():
                path.rename(draft / path.name)
        sync_folder(draft)
        if self.final.exists():  # a failed or damaged run of this cell is replaced only now
            self.final.rename(self.partial / "replaced")
        draft.rename(self.final)
        sync_names(self.final.parent)
        shutil.rmtree(self.partial)

    def _put(self, draft: Path, target: Path) -> None:
        """Give a complete folder its name, and return once both are on the disk."""
        sync_folder(draft)
        draft.rename(target)
        sync_names(target.parent)
