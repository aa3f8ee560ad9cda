"""Joining results folders that were filled on several machines.

What contradicts is refused, by name, before anything is written. Merging again, or after a kill, does only what is
missing.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vcpo_bench.bench.cells.cell_store import KEPT
from vcpo_bench.bench.cells.copying import copy_cell, copy_file, copy_sealed, left_out
from vcpo_bench.bench.cells.results_folder import TABLES, ResultsFolder, status_of
from vcpo_bench.errors import DamagedResultError, UsageError
from vcpo_bench.files.checksums import read_sealed, seal_of
from vcpo_bench.files.durable import publish_folder, sync_names
from vcpo_bench.files.folders import is_folder, made, refuse_link
from vcpo_bench.files.parquet import read_parquet
from vcpo_bench.files.regular import read_regular
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
from vcpo_bench.records.layout import cells_in

SHOWN = 5
"""Most conflicting names in a message."""


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge did.

    Attributes:
        copied: Number of cells that were copied.
        present: Number of cells that several folders have, or that were there.
        unfinished: Number of cells that were left out because they have not ended.
        left_out: Files and links in the folders that are no part of the results, and were not copied.
    """

    copied: int
    present: int
    unfinished: int
    left_out: tuple[str, ...] = ()


def merge(sources: Sequence[Path], out: Path) -> Merged:
    """Copy the ended cells of several results folders, and what was measured on them, into one (made if missing).

    A cell that several folders have must have the same numbers, wall-clock times aside; one that failed gives way to
    one that did not.

    Raises:
        UsageError: A folder is no results folder or has links for folders, or two contradict each other: nothing is
            written then.
        DamagedResultError: A file does not match its checksum, or is none but a link, a pipe or a device.
    """
    for source in sources:
        cells_in(source)
    folders = [*([out] if (out / CELLS).is_dir() else []), *sources]
    cells, conflicts = _chosen(folders)
    _check_rules(cells)
    extras, more, strange = _extras(folders)
    if conflicts or more:
        raise UsageError(_refusal(conflicts + more))
    folder = ResultsFolder(out)
    with folder.locked(wait=False):
        for source in sources:
            if (source / GRID_FILE).exists():
                folder.update_grid(_listed(source / GRID_FILE))
        missing = {key: path for key, path in cells.items() if path.parent != folder.cells}
        for key, path in track(missing.items(), "copying cells", len(missing)):
            folder.check()
            strange += _copy_cell(path, folder, key)
        for name, path in track(extras.items(), "copying states and tables", len(extras)):
            _copy_extra(path, out / name)
    begun = [
        path.name.removesuffix(PARTIAL_SUFFIX)
        for source in sources
        for path in (source / CELLS).glob(f"*{PARTIAL_SUFFIX}")
    ]
    unfinished = len(set(begun) - set(cells))
    present = sum(len(_ended(source)) for source in sources) - len(missing)
    return Merged(len(missing), present, unfinished, tuple(strange))


def _check_rules(cells: Mapping[str, Path]) -> None:
    """Refuse cells of several versions of the rules, which no scoreboard could compare."""
    by_version = {str(read_cell_file(path / CELL_FILE).get("rules_version")): path for path in cells.values()}
    if len(by_version) > 1:
        places = " and ".join(f"{version} ({path.parent.parent})" for version, path in sorted(by_version.items()))
        raise UsageError(f"merge: cells ran under rules versions {places}, which cannot be compared; keep them apart")


def _listed(grid: Path) -> Mapping[str, Mapping[str, Any]]:
    """The cells that a `grid.json` lists."""
    cells = read_sealed(grid).get("cells")
    if not isinstance(cells, dict) or not all(isinstance(cell, dict) and "control" in cell for cell in cells.values()):
        raise DamagedResultError(
            f"{grid} does not list its cells; delete it, and the next run into that folder makes it"
        )
    return cells


def _chosen(folders: Sequence[Path]) -> tuple[dict[str, Path], list[str]]:
    """The folder to take every cell from, by key, and the keys of cells that contradict each other."""
    chosen: dict[str, Path] = {}
    conflicts = []
    ended = [(path.name, path) for folder in folders for path in _ended(folder)]
    for key, path in track(ended, "comparing cells", len(ended)):
        known = chosen.setdefault(key, path)
        if known == path or status_of(path) == "error":
            continue
        if status_of(known) == "error":
            chosen[key] = path
        elif not _same(known, path):
            conflicts.append(f"{key} ({known.parent.parent} and {path.parent.parent})")
        elif is_folder(path / KEPT) and not is_folder(known / KEPT):
            chosen[key] = path  # the same run, with checkpoints to evaluate and fork from
    return chosen, conflicts


def _ended(folder: Path) -> list[Path]:
    folders = sorted(path for path in cells_in(folder).iterdir() if path.is_dir() and not path.name.startswith("."))
    ended = [path for path in folders if not path.name.endswith(PARTIAL_SUFFIX)]
    for path in ended:
        refuse_link(path)
    return ended


def _same(first: Path, second: Path) -> bool:
    """Whether two folders hold the same run."""
    ours, theirs = (read_cell_file(path / CELL_FILE) for path in (first, second))
    if any(ours.get(name) != theirs.get(name) for name in ("status", "steps_done")):
        return False
    return all(_numbers(first, ours, name) == _numbers(second, theirs, name) for name in TABLES)


def _numbers(folder: Path, facts: dict[str, Any], name: str) -> str:
    table = read_parquet(folder / name, seal_of(facts))
    timeless = [column for column in table.column_names if not column.startswith("seconds")]
    return repr(table.select(timeless).to_pydict())  # repr: NaN equals itself, and floats are exact


def _extras(folders: Sequence[Path]) -> tuple[dict[str, Path], list[str], list[str]]:
    """Fork states and tables beside the cells, by their path in a results folder; those that contradict; the rest."""
    chosen: dict[str, Path] = {}
    conflicts, strange = [], []
    for folder in folders:
        for part in (ORIGINS_FOLDER, PROBES_FOLDER, SCORES_FOLDER):
            refuse_link(folder / part)
            for path in sorted((folder / part).glob("[!.]*")):
                name = f"{part}/{path.name}"
                if path.is_symlink() or not (path.is_dir() if part == ORIGINS_FOLDER else path.suffix == ".parquet"):
                    strange.append(str(path))
                    continue
                known = chosen.setdefault(name, path)
                if known != path and not path.is_dir() and read_regular(known) != read_regular(path):
                    conflicts.append(f"{name} ({known.parents[1]} and {folder})")
    return chosen, conflicts, strange


def _refusal(conflicts: Sequence[str]) -> str:
    more = f", and {len(conflicts) - SHOWN} more" if len(conflicts) > SHOWN else ""
    return (
        f"merge: {len(conflicts)} with the same name and other numbers: {'; '.join(conflicts[:SHOWN])}{more}. They "
        "were made by other code, libraries or hardware; keep such folders apart: show and report take several"
    )


def _copy_cell(source: Path, folder: ResultsFolder, key: str) -> list[str]:
    """Copy a cell and give the copy its name by one rename; returns what was left out."""
    draft = folder.cells / f".{key}.merging"
    copy_cell(source, draft)
    without = [str(source / name) for name in left_out(source, draft)]
    if not publish_folder(draft, folder.cells / key):  # a run that failed is there, or one without checkpoints
        shutil.rmtree(folder.cells / key)
        publish_folder(draft, folder.cells / key)
    return without


def _copy_extra(source: Path, target: Path) -> None:
    if target.exists():
        return
    made(target.parents[1], target.parent.name)
    draft = target.with_name(f".{target.name}.merging")
    if source.is_dir():
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        copy_sealed(source / STATE_FILE, draft)
    else:
        draft.unlink(missing_ok=True)
        copy_file(source, draft)
    draft.rename(target)
    sync_names(target.parent)
