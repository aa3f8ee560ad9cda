"""Verifying a results folder: every bit of every cell, checkpoint and table in it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from vcpo_bench.bench.cells.cell_store import CHECKPOINT, KEPT, CellStore, numbered
from vcpo_bench.bench.cells.results_folder import TABLES, ResultsFolder
from vcpo_bench.errors import DamagedResultError
from vcpo_bench.files.checksums import read_sealed, seal_of, verify_files, verify_sealed
from vcpo_bench.files.parquet import read_parquet
from vcpo_bench.files.regular import IS_LINK, check_itself
from vcpo_bench.progress import track
from vcpo_bench.records import (
    CELL_FILE,
    GRID_FILE,
    ORIGINS_FOLDER,
    PARTIAL_SUFFIX,
    PROBES_FOLDER,
    SCORES_FOLDER,
    STATE_FILE,
)
from vcpo_bench.records.cell_file import read_cell_file
from vcpo_bench.records.layout import cells_in

LOOKS, LOOK_SECONDS = 10, 0.05
Kind = Literal["cell", "checkpoint", "fork state", "table", "list of cells"]


@dataclass(frozen=True, slots=True)
class Checked:
    """One thing of a results folder that was verified.

    Attributes:
        path: Its folder or file.
        kind: What it is.
        damage: What is wrong, with the path of the file; empty: nothing.
        unread: Why it could not be read, with the path of the file; empty: it was. That is no damage: another user may
            be able to, or the same one later.
        sealed: Whether it has checksums. Without any, damage is noticed only where it makes a file unreadable.
    """

    path: Path
    kind: Kind
    damage: str = ""
    unread: str = ""
    sealed: bool = True


def check_folder(results: Path) -> Iterator[Checked]:
    """Verify everything in a results folder.

    Raises:
        UsageError: It is not a results folder.
    """
    if (grid := results / GRID_FILE).exists():
        yield _checked(grid, "list of cells", partial(read_sealed, grid))
    cells = sorted(path for path in cells_in(results).iterdir() if path.is_dir())
    for folder in track(cells, "verifying cells", len(cells)):
        if folder.is_symlink() or not folder.name.endswith(PARTIAL_SUFFIX):
            yield _checked(folder, "cell", partial(_verify_cell, folder))
        if folder.is_symlink():
            continue
        try:
            checkpoints = [*numbered(folder / KEPT).values(), *numbered(folder, CHECKPOINT).values()]
        except OSError as error:
            yield _unread(folder, "checkpoint", error)
            continue
        for checkpoint in checkpoints:
            found = _check_state(checkpoint, "checkpoint")
            if not found.damage or not _goes_away(checkpoint):
                yield found
    for name in (ORIGINS_FOLDER, PROBES_FOLDER, SCORES_FOLDER):
        if (linked := results / name).is_symlink():
            yield Checked(linked, "fork state" if name == ORIGINS_FOLDER else "table", f"{linked} {IS_LINK}")
    states = sorted(path for path in _inside(results, ORIGINS_FOLDER) if path.is_dir())
    for state in track(states, "verifying fork states", len(states)):
        yield _check_state(state, "fork state")
    inside = [path for name in (PROBES_FOLDER, SCORES_FOLDER) for path in _inside(results, name)]
    tables = [path for path in inside if path.suffix == ".parquet"]
    for table in track(tables, "verifying tables", len(tables)):
        yield _checked(table, "table", partial(_verify_table, table))


def set_aside(folder: ResultsFolder, found: Checked) -> str:
    """Move something damaged out of the way, so that the command that made it makes it again.

    A cell whose kept checkpoint is damaged goes as a whole: only running it again makes another one.

    Args:
        folder: The results folder, locked by the caller.
        found: What is damaged.

    Returns:
        Where it is now and what to do, in one line; empty: it went with its cell before.
    """
    if not os.path.lexists(found.path):
        return ""
    if found.kind == "list of cells":
        return f"{found.path.name}: the next run into this folder writes it again"
    cell = next((path for path in (found.path, *found.path.parents) if path.parent == folder.cells), None)
    if cell is None:
        return f"moved to {folder.move_to_damaged(found.path)}; run its command again"
    if not cell.name.endswith(PARTIAL_SUFFIX):
        return f"moved to {folder.set_aside(cell.name)}; the same run command makes this cell again"
    store = CellStore(folder.cells, cell.name.removesuffix(PARTIAL_SUFFIX))
    with store.open():
        return f"moved to {store.set_checkpoint_aside(found.path)}; the same run command resumes without it"


def _inside(results: Path, name: str) -> list[Path]:
    """What is in a folder of a results folder, unless that is only a link."""
    folder = results / name
    return [] if folder.is_symlink() else sorted(folder.glob("[!.]*"))


def _goes_away(checkpoint: Path) -> bool:
    """Whether a checkpoint is only being replaced by a run that goes on: then it is gone in a moment."""
    for _ in range(LOOKS):
        if not checkpoint.exists():
            return True
        time.sleep(LOOK_SECONDS)
    return False


def _check_state(folder: Path, kind: Kind) -> Checked:
    return _checked(folder, kind, partial(_verify_state, folder))


def _verify_state(folder: Path) -> dict[str, Any]:
    check_itself(folder)
    return verify_sealed(folder / STATE_FILE)


def _verify_table(path: Path) -> dict[str, Any]:
    read_parquet(path)
    return {}


def _checked(path: Path, kind: Kind, verify: Callable[[], dict[str, Any]]) -> Checked:
    try:
        values = verify()
    except DamagedResultError as error:
        return Checked(path, kind, str(error))
    except OSError as error:
        return _unread(path, kind, error)
    return Checked(path, kind, sealed=kind == "table" or seal_of(values) is not None)


def _unread(path: Path, kind: Kind, error: OSError) -> Checked:
    return Checked(path, kind, unread=f"{error.filename or path} cannot be read ({error.strerror})")


def _verify_cell(folder: Path) -> dict[str, Any]:
    for itself in (folder, folder / KEPT):
        check_itself(itself)
    facts = read_cell_file(folder / CELL_FILE)
    seal = seal_of(facts)
    if seal is not None:
        verify_files(folder, seal)
        missing = [name for name in TABLES if name not in seal]
    else:
        missing = list(TABLES)
    for name in {*missing, *(path.name for path in folder.glob("[!.]*.parquet") if seal is None)}:
        read_parquet(folder / name)
    return facts
