"""The folder of one running cell: its claim, its checkpoints, and how it becomes the folder of an ended cell.

Every change of state is one rename, so a process killed at any point leaves either the old state or the new one. What
a state replaces is removed only once the new one is on the disk, so a power loss does not cost both.

Two processes may work on a cell if one was taken for dead (`files.claims`). So each writes under names of its own,
which hold its token, and the first to rename wins. A cell is idempotent: whose files win makes no difference.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from vcpo_bench.bench.cells.results_folder import status_of
from vcpo_bench.errors import DamagedResultError
from vcpo_bench.files.claim_files import is_claim, names_in
from vcpo_bench.files.claims import Claim, ClaimHistory, ClaimLostError
from vcpo_bench.files.durable import link_folder, publish_folder, sync_names
from vcpo_bench.files.folders import is_folder, made, refuse_link
from vcpo_bench.files.missing import is_missing, unless_missing
from vcpo_bench.records import PARTIAL_SUFFIX

CHECKPOINT = "checkpoint-"
"""Name of a checkpoint's folder, before the number of updates done."""
KEPT = "checkpoints"
"""Folder of the numbered checkpoints that stay with the results."""

_DRAFT, _FINAL, _REPLACED, _LEFT = "draft-", "final-", "replaced-", "left"


def numbered(folder: Path, prefix: str = "") -> dict[int, Path]:
    """Folders named `prefix` and a number, by that number, smallest first; other names are no checkpoints."""
    names = [] if folder.is_symlink() else names_in(folder)
    paths = {int(name[len(prefix) :]): folder / name for name in names if _is_numbered(name, prefix)}
    return {number: path for number, path in sorted(paths.items()) if is_folder(path)}


def _is_numbered(name: str, prefix: str) -> bool:
    return re.fullmatch(rf"{re.escape(prefix)}[0-9]{{1,12}}", name) is not None


class CellStore:
    """The folder of one cell while it runs, and the one it becomes when the cell ends."""

    def __init__(self, cells: Path, key: str) -> None:
        self.final = cells / key
        self.partial = cells / f"{key}{PARTIAL_SUFFIX}"

    @contextmanager
    def open(
        self,
        say: Callable[[str], object] = lambda _: None,
        wait: bool = True,
        job: str = "",
        watch: ClaimHistory | None = None,
    ) -> Iterator[None]:
        """Claim the partial folder inside the block, after any worker that outlived its killed parent.

        Args:
            say: Called with one line, which names that worker, when it takes long to end.
            wait: Wait for another worker; see `files.claims.Claim`, as for `job` and `watch`.
            job: Name of the scheduler's job this worker runs in.
            watch: What earlier tries have seen; it is tried once more.

        Raises:
            UsageError: A link stands in for a folder of the cell.
            ClaimHeldError: Another worker has the cell, and it is not to be waited for.
            ClaimLostError: Another worker has taken it over already.
        """
        for folder in (self.partial, self.final):  # what is cleared away there must not be someone's
            refuse_link(folder)
        with Claim(self.partial, say, wait, job, watch) as self.claim:
            with self._unless_taken():
                sync_names(self.partial.parent)
                self._tidy()
            yield

    def _tidy(self) -> None:
        """Clear away what a killed worker left, and return a failed cell's checkpoints to where training looks.

        That worker may not be dead, and move or remove the same files at the same time.
        """
        for number, left in enumerate(self._left(_FINAL)):
            with unless_missing():  # it was not dead, and has just published this
                left.rename(self._draft(f"{_LEFT}{number}-"))  # so it cannot be published any more
        for left in self._left(_REPLACED):
            with unless_missing():
                if _ended(left) is not None and not self.final.exists():
                    publish_folder(left, self.final)
        if _status(self.final) == "error":
            self._put_back()
        for left in self._left(_DRAFT, _FINAL, _REPLACED, _LEFT):
            shutil.rmtree(left, ignore_errors=True)

    def _left(self, *prefixes: str) -> list[Path]:
        return [self.partial / name for name in sorted(names_in(self.partial)) if name.startswith(prefixes)]

    def _put_back(self) -> None:
        """Return checkpoints from the folder of a failed cell."""
        for path in (*numbered(self.final / KEPT).values(), *numbered(self.final, CHECKPOINT).values()):
            target = self.partial / path.relative_to(self.final)
            with unless_missing():
                made(self.partial, *target.relative_to(self.partial).parts[:-1])
                publish_folder(path, target)

    def ended(self) -> str | None:
        """Status of the cell if it ended without an error while this process waited for the claim."""
        return _ended(self.final)

    def check(self) -> None:
        """Make sure that this process still has the cell.

        Raises:
            ClaimLostError: Another process has taken it over, or has ended it.
        """
        self.claim.check()

    def clear(self) -> None:
        """Remove what the partial folder of a cell holds that has ended; the claim, when given back, takes the rest."""
        for name in names_in(self.partial):
            if not is_claim(name):
                shutil.rmtree(self.partial / name, ignore_errors=True)  # what is left is cleared by the next run

    def discard(self) -> None:
        """Remove the partial folder of a cell that has ended, without its claim: a killed worker left it."""
        shutil.rmtree(self.partial, ignore_errors=True)

    def latest_checkpoint(self) -> Path | None:
        """The newest complete checkpoint, or None."""
        return next(reversed(numbered(self.partial, CHECKPOINT).values()), None)

    def checkpoints(self) -> list[Path]:
        """Every checkpoint that training can resume from, the kept ones too, newest first."""
        by_step = numbered(self.partial / KEPT) | numbered(self.partial, CHECKPOINT)
        return [by_step[step] for step in sorted(by_step, reverse=True)]

    def set_checkpoint_aside(self, checkpoint: Path) -> Path:
        """Rename a checkpoint that cannot be used, so that no run resumes from it."""
        aside = checkpoint.with_name(f"damaged-{checkpoint.name}")
        if aside.exists():
            shutil.rmtree(aside)
        return checkpoint.rename(aside)

    def scratch(self) -> Path:
        """A new, empty folder inside the cell's, for files from which no run resumes; it goes when the cell ends."""
        folder = self._draft(f"{_DRAFT}scratch-")
        with self._unless_taken():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        return folder

    @contextmanager
    def checkpoint(self, step: int) -> Iterator[Path]:
        """Write to the yielded folder; it becomes the latest checkpoint when the block ends, replacing older ones.

        Raises:
            ClaimLostError: Another process has taken the cell over.
        """
        with self._drafting(_DRAFT) as draft:
            yield draft
        with self._unless_taken():
            self._publish(draft, self.partial / f"{CHECKPOINT}{step:08d}")
        for known, old in numbered(self.partial, CHECKPOINT).items():
            if known < step:
                shutil.rmtree(old, ignore_errors=True)  # what is left goes with the next one

    def keep(self, step: int, save: Callable[[Path], None]) -> None:
        """Let `save` write a numbered checkpoint that stays with the results.

        Raises:
            ClaimLostError: Another process has taken the cell over.
        """
        target = self.partial / KEPT / f"{step:08d}"
        if is_folder(target):
            return
        with self._drafting(_DRAFT) as draft:
            save(draft)
        with self._unless_taken():
            made(self.partial, KEPT)
            self._publish(draft, target)
            sync_names(self.partial)

    @contextmanager
    def finish(self, failed: bool = False) -> Iterator[Path]:
        """Write the final files to the yielded folder; the cell has ended when the block ends.

        Where another process ended the cell first, its results stay and these are discarded.

        Args:
            failed: The cell ended with an error: its latest checkpoint stays, and the next run resumes from it.

        Raises:
            ClaimLostError: Another process has taken the cell over, and goes on.
        """
        with self._drafting(_FINAL) as draft:
            try:
                yield draft
            finally:
                self.check()  # without the claim, files may have gone
        with self._unless_taken():
            self._collect(draft, failed)
            self._end(draft)
        self.clear()

    def _collect(self, draft: Path, failed: bool) -> None:
        """Give the checkpoints that are to stay with the results a second name in their folder.

        The first one goes when the cell has ended: a process that stands still here has taken nothing from another.
        """
        resumable = numbered(self.partial, CHECKPOINT).values() if failed else ()
        try:
            for path in (*numbered(self.partial / KEPT).values(), *resumable):
                link_folder(path, draft / path.relative_to(self.partial))
            if is_folder(draft / KEPT):
                sync_names(draft / KEPT)
        finally:
            self.check()  # what went missing meanwhile, another process has cleared away

    def _end(self, draft: Path) -> None:
        """Give the final files their name; a failed or damaged run of this cell is replaced only now."""
        while not publish_folder(draft, self.final):
            if self.ended() is not None:
                return  # another process was first
            aside = self._draft(_REPLACED)
            shutil.rmtree(aside, ignore_errors=True)
            with unless_missing():
                self.final.rename(aside)
                if _ended(aside) is not None:  # it was published between these two lines
                    publish_folder(aside, self.final)

    def _draft(self, prefix: str) -> Path:
        """A path that no other process uses."""
        return self.partial / f"{prefix}{self.claim.token}"

    @contextmanager
    def _drafting(self, prefix: str) -> Iterator[Path]:
        """A new folder to write to, inside the block; an error there, once it is gone, tells that the cell is taken."""
        draft = self._draft(prefix)
        with self._unless_taken():
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir()
        try:
            yield draft
        except Exception as problem:
            if draft.is_dir() or isinstance(problem, ClaimLostError):
                raise
            raise self._taken() from problem

    @contextmanager
    def _unless_taken(self) -> Iterator[None]:
        """Inside, what is missing was moved by another process, which has the cell."""
        try:
            yield
        except OSError as error:
            if not is_missing(error):
                raise
            raise self._taken() from error

    def _taken(self) -> ClaimLostError:
        return ClaimLostError(f"{self.partial} was taken over by another process")

    def _publish(self, draft: Path, target: Path) -> None:
        """Give a checkpoint its name, unless there is one of that name."""
        self.check()
        if not publish_folder(draft, target):
            shutil.rmtree(draft, ignore_errors=True)


def _ended(folder: Path) -> str | None:
    """Status of the cell in a folder if it ended without an error, and is whole."""
    status = _status(folder)
    return None if status == "error" else status


def _status(folder: Path) -> str | None:
    """Status of the cell in a folder, if it has ended and is whole."""
    with suppress(DamagedResultError), unless_missing():
        return status_of(folder)
    return None
