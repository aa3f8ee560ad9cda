"""Verifying a results folder: every bit of every cell, checkpoint and table in it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from vcpo_bench.bench.cells.cell_store import CHECKPOINT, KEPT, CellStore, numbered
from vcpo_bench.bench.cells.results_folder import TABLES, ResultsFolder
from vcpo_bench.errors import DamagedResultError, UsageError
from vcpo_bench.files.checksums import read_sealed, seal_of, verify_files, verify_sealed
from vcpo_bench.files.parquet import read_parquet
from vcpo_bench.progress import track
from vcpo_bench.records import (
    CELL_FILE,
    CELLS,
    GRID_FILE,
    ORIGINS_FOLDER,
    PARTIAL_SUFFIX,
    PROBES_FOLDER,
    SCORES_FOLDER,
    STATE_FILE,
)
from vcpo_bench.records.cell_file import read_cell_file

LOOKS, LOOK_SECONDS = 10, 0.05
Kind = Literal["cell", "checkpoint", "fork state", "table", "list of cells"]


@dataclass(frozen=True, slots=True)
class Checked:
    """One thing of a results folder that was verified.

    Attributes:
        path: Its folder or file.
        kind: What it is.
        damage: What is wrong, with the path of the file; empty: nothing.
        sealed: Whether it has checksums. Without any, damage is noticed only where it makes a file unreadable.
    """

    path: Path
    kind: Kind
    damage: str = ""
    sealed: bool = True


def check_folder(results: Path) -> Iterator[Checked]:
    """Verify everything in a results folder.

    Raises:
        UsageError: It is not a results folder.
    """
    if not (results / CELLS).is_dir():
        raise UsageError(f"{results} is not a results folder: it has no {CELLS}/ inside")
    if (grid := results / GRID_FILE).exists():
        yield _checked(grid, "list of cells", partial(read_sealed, grid))
    cells = sorted(path for path in (results / CELLS).iterdir() if path.is_dir())
    for folder in track(cells, "verifying cells", len(cells)):
        if not folder.name.endswith(PARTIAL_SUFFIX):
            yield _checked(folder, "cell", partial(_verify_cell, folder))
        for checkpoint in (*numbered(folder / KEPT).values(), *numbered(folder, CHECKPOINT).values()):
            found = _check_state(checkpoint, "checkpoint")
            if not found.damage or not _goes_away(checkpoint):
                yield found
    states = sorted(path for path in (results / ORIGINS_FOLDER).glob("[!.]*") if path.is_dir())
    for state in track(states, "verifying fork states", len(states)):
        yield _check_state(state, "fork state")
    tables = [
        path for name in (PROBES_FOLDER, SCORES_FOLDER) for path in sorted((results / name).glob("[!.]*.parquet"))
    ]
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
    if not found.path.exists():
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


def _goes_away(checkpoint: Path) -> bool:
    """Whether a checkpoint is only being replaced by a run that goes on: then it is gone in a moment."""
    for _ in range(LOOKS):
        if not checkpoint.exists():
            return True
        time.sleep(LOOK_SECONDS)
    return False


def _check_state(folder: Path, kind: Kind) -> Checked:
    return _checked(folder, kind, partial(verify_sealed, folder / STATE_FILE))


def _verify_table(path: Path) -> dict[str, Any]:
    read_parquet(path)
    return {}


def _checked(path: Path, kind: Kind, verify: Callable[[], dict[str, Any]]) -> Checked:
    try:
        values = verify()
    except DamagedResultError as error:
        return Checked(path, kind, str(error))
    except OSError as error:
        return Checked(path, kind, f"{error.filename or path} cannot be read ({error.strerror})")
    return Checked(path, kind, sealed=kind == "table" or seal_of(values) is not None)


def _verify_cell(folder: Path) -> dict[str, Any]:
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
