"""Follows a results folder and logs new rows to wandb: one wandb run per cell, whose id is the cell's key.

All rows come from recorded tables; those of a running cell, from its newest checkpoint. So a mirror may start late,
crash or restart without gaps or repeated rows.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vcpo_bench.bench.cells.cell_store import CellStore
from vcpo_bench.bench.outside.wandb_mirror.history import history
from vcpo_bench.files.checksums import read_sealed
from vcpo_bench.files.locks import LOCK_FILE, FileLock, LockHeldError
from vcpo_bench.records import CELL_FILE, CELLS

NEEDED_BYTES = 2**20
"""With less free disk space than this after mirroring a cell, some of its rows may not have been written."""

_FACTS = ("status", "reason", "steps_done", "seconds")
_ORIGIN = ("control", "method_version", "rules_version", "provenance")


@dataclass(frozen=True, slots=True)
class MirrorSettings:
    """What to mirror, and where to. JSON values only, since another process receives it.

    Attributes:
        folder: The results folder.
        mode: `offline` or `online`.
        project: wandb project.
        cells: Configuration of every cell by key.
    """

    folder: str
    mode: str
    project: str
    cells: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def load_wandb(settings: MirrorSettings) -> Any:
    """Import wandb, silent and, in offline mode, writing only inside the results folder.

    Raises:
        ImportError: It is not installed (an empty folder named wandb does not count).
    """
    kept = Path(settings.folder).resolve() / "wandb"
    os.environ.setdefault("WANDB_SILENT", "true")
    if settings.mode == "offline":
        for name in ("CACHE", "CONFIG", "DATA"):
            os.environ.setdefault(f"WANDB_{name}_DIR", str(kept / ".cache" / name.lower()))
    import wandb

    if not hasattr(wandb, "init"):
        raise ImportError("wandb is an empty folder")
    return wandb


def problem_with_wandb(error: Exception) -> str:
    """Describe an error in one phrase."""
    if isinstance(error, ImportError):
        return "it is not installed (pip install 'vcpo-bench[wandb]')"
    return f"{type(error).__name__}: {' '.join(str(error).split()) or 'no reason given'}"


class Follower:
    """Keeps wandb up to date with a results folder.

    Args:
        settings: What to mirror.
        wandb: The wandb module.
        heartbeat: Called after each cell that was logged.

    Attributes:
        waiting: Keys of the cells that are not fully mirrored.
    """

    def __init__(self, settings: MirrorSettings, wandb: Any, heartbeat: Callable[[], None] = lambda: None) -> None:
        self.settings, self.wandb, self.heartbeat = settings, wandb, heartbeat
        self.folder = Path(settings.folder).resolve()
        self.marks = self.folder / "wandb" / "mirrored" / f"{settings.mode}-{settings.project}"
        self.waiting: list[str] = []
        self._failed_before: dict[str, str] = {}
        self._lock: FileLock | None = None
        self._runs: dict[str, Any] = {}
        self._next: dict[str, int] = {}
        self._seen: dict[str, str] = {}

    def update(self, last: bool = False) -> int:
        """Log what is new.

        Args:
            last: The run is over: cells that have not ended are logged as interrupted.

        Returns:
            Number of cells that are now fully mirrored.

        Raises:
            BlockingIOError: `last`, and another mirror still holds the folder.
        """
        done = 0
        cells = self.folder / CELLS
        if not cells.is_dir() or not (self._lock or self._hold(last)):
            return 0
        present = set(os.listdir(cells))
        for key in list(self.waiting):
            running = CellStore(cells, key).partial.name in present
            tried = key not in self._failed_before or self._ended(key) != self._failed_before[key]
            if key in present and (tried or (last and not running)):
                self._log_ended(key)
                done += 1
            elif running:
                self._log_running(key)
        for run in self._runs.values() if last else ():
            run.finish(exit_code=1)
        return done

    def report(self, page: Path) -> None:
        """Log the report of the folder, in a wandb run of its own."""
        name = "report-" + re.sub(r"[^\w.-]+", "_", self.folder.name)
        run = self._init(name, "report", {"cells": len(self.settings.cells)})
        run.log({"report": self.wandb.Html(str(page), inject=False)})
        run.finish()

    def close(self) -> None:
        """Release the folder for other mirrors."""
        if self._lock:
            self._lock.__exit__(None, None, None)
            self._lock = None

    def _hold(self, last: bool) -> bool:
        """Lock the folder and list the cells to mirror; under the lock, since another mirror may be finishing some."""
        path = self.folder / "wandb" / LOCK_FILE
        path.parent.mkdir(exist_ok=True)
        try:
            self._lock = FileLock(path, wait=False).__enter__()
        except LockHeldError as error:
            if last:
                raise BlockingIOError(f"another process is mirroring the folder ({error})") from error
            return False
        self.waiting = [key for key in self.settings.cells if not self._is_marked(key)]
        self._failed_before = {key: ended for key in self.waiting if (ended := self._failure(key))}
        return True

    def _log_running(self, key: str) -> None:
        """Log the rows of a running cell's newest checkpoint."""
        checkpoint = CellStore(self.folder / CELLS, key).latest_checkpoint()
        if checkpoint is None or checkpoint.name == self._seen.get(key):
            return
        try:
            rows = list(history(checkpoint, self._next.get(key, 0), ended=False))
        except OSError:  # a newer checkpoint has just replaced it: the next update reads that one
            return
        self._log(key, rows)
        self._seen[key] = checkpoint.name

    def _log_ended(self, key: str) -> None:
        folder = self.folder / CELLS / key
        facts = read_sealed(folder / CELL_FILE)
        self._log(key, list(history(folder, self._next.get(key, 0), ended=True)))
        run = self._runs.pop(key)
        run.config.update({name: facts.get(name) for name in _ORIGIN}, allow_val_change=True)
        run.summary.update({name: facts.get(name) for name in _FACTS})
        run.finish(exit_code=int(facts["status"] == "error"))
        if shutil.disk_usage(self.folder / "wandb").free < NEEDED_BYTES:  # wandb's service does not report lost writes
            raise OSError("the disk is full")
        self.marks.mkdir(parents=True, exist_ok=True)
        (self.marks / key).write_text(self._ended(key))
        self.waiting.remove(key)

    def _log(self, key: str, rows: list[tuple[int, dict[str, Any]]]) -> None:
        if key not in self._runs:
            self._runs[key] = run = self._init(key, "cell", {"key": key, **self.settings.cells[key]})
            self._next[key] = run.starting_step  # online, a resumed wandb run knows its last step
        for step, metrics in rows:
            if step >= self._next[key]:
                self._runs[key].log(metrics, step=step)
                self._next[key] = step + 1
        self.heartbeat()

    def _init(self, name: str, kind: str, config: Mapping[str, Any]) -> Any:
        offline = self.settings.mode == "offline"
        if offline:  # left by an earlier attempt, whose rows are all logged again
            for old in (self.folder / "wandb").glob(f"offline-run-*-{name}"):
                shutil.rmtree(old)
        quiet = self.wandb.Settings(
            console="off", silent=True, disable_git=True, disable_code=True, x_disable_stats=True, x_disable_meta=True
        )
        return self.wandb.init(
            dir=str(self.folder),
            mode=self.settings.mode,
            project=self.settings.project,
            group=self.folder.name,
            job_type=kind,
            id=name,
            name=name,
            config=dict(config),
            resume=None if offline else "allow",
            reinit="create_new",
            settings=quiet,
        )

    def _is_marked(self, key: str) -> bool:
        mark = self.marks / key
        return mark.exists() and mark.read_text() == self._ended(key)

    def _failure(self, key: str) -> str:
        """When the cell ended with an error, if it did: running the grid again retries it."""
        path = self.folder / CELLS / key / CELL_FILE
        return self._ended(key) if path.exists() and read_sealed(path).get("status") == "error" else ""

    def _ended(self, key: str) -> str:
        path = self.folder / CELLS / key / CELL_FILE
        return str(read_sealed(path).get("ended")) if path.exists() else ""
