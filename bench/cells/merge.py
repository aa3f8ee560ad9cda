"""Joining results folders that were filled on several machines.

What contradicts is refused, by name, before anything is written. Merging again, or after a kill, does only what is
missing.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vcpo_bench.bench.cells.cell_store import KEPT
from vcpo_bench.bench.cells.results_folder import TABLES, ResultsFolder, status_of
from vcpo_bench.errors import DamagedResultError, UsageError
from vcpo_bench.files.checksums import read_sealed, seal_of, verify_files
from vcpo_bench.files.durable import publish_folder, sync_file, sync_names
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
)
from vcpo_bench.records.cell_file import read_cell_file

SHOWN = 5
"""Most conflicting names in a message."""


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge did.

    Attributes:
        copied: Number of cells that were copied.
        present: Number of cells that several folders have, or that were there.
        unfinished: Number of cells that were left out because they have not ended.
    """

    copied: int
    present: int
    unfinished: int


def merge(sources: Sequence[Path], out: Path) -> Merged:
    """Copy the ended cells of several results folders, and what was measured on them, into one.

    A cell that several folders have must have the same numbers, wall-clock times aside; one that failed gives way to
    one that did not.

    Args:
        sources: Results folders; they are only read.
        out: Results folder, made if missing.

    Raises:
        UsageError: A folder is no results folder, or two contradict each other: nothing is written then.
        DamagedResultError: A file does not match its checksum.
    """
    for source in sources:
        if not (source / CELLS).is_dir():
            raise UsageError(f"{source} is not a results folder: it has no {CELLS}/ inside")
    folders = [*([out] if (out / CELLS).is_dir() else []), *sources]
    cells, conflicts = _chosen(folders)
    _check_rules(cells)
    extras, more = _extras(folders)
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
            _copy_cell(path, folder, key)
        for name, path in track(extras.items(), "copying states and tables", len(extras)):
            _copy_extra(path, out / name)
    begun = [
        path.name.removesuffix(PARTIAL_SUFFIX) for one in sources for path in (one / CELLS).glob(f"*{PARTIAL_SUFFIX}")
    ]
    unfinished = len(set(begun) - set(cells))
    return Merged(len(missing), sum(len(_ended(one)) for one in sources) - len(missing), unfinished)


def _check_rules(cells: Mapping[str, Path]) -> None:
    """Refuse cells of several versions of the rules, which no scoreboard could compare.

    Raises:
        UsageError: There are several.
    """
    found = {str(read_cell_file(path / CELL_FILE).get("rules_version")): path for path in cells.values()}
    if len(found) > 1:
        places = " and ".join(f"{version} ({path.parent.parent})" for version, path in sorted(found.items()))
        raise UsageError(f"merge: cells ran under rules versions {places}, which cannot be compared; keep them apart")


def _listed(grid: Path) -> Mapping[str, Mapping[str, Any]]:
    """The cells that a `grid.json` lists.

    Raises:
        DamagedResultError: It lists none as it should.
    """
    cells = read_sealed(grid).get("cells")
    if not isinstance(cells, dict) or not all(isinstance(one, dict) and "control" in one for one in cells.values()):
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
        elif (path / KEPT).is_dir() and not (known / KEPT).is_dir():
            chosen[key] = path  # the same run, with checkpoints to evaluate and fork from
    return chosen, conflicts


def _ended(folder: Path) -> list[Path]:
    found = sorted(path for path in (folder / CELLS).iterdir() if path.is_dir())
    return [path for path in found if not path.name.endswith(PARTIAL_SUFFIX) and not path.name.startswith(".")]


def _same(first: Path, second: Path) -> bool:
    """Whether two folders hold the same run."""
    ours, theirs = (read_cell_file(path / CELL_FILE) for path in (first, second))
    if any(ours.get(name) != theirs.get(name) for name in ("config", "status", "steps_done")):
        return False
    return all(_numbers(first, ours, name) == _numbers(second, theirs, name) for name in TABLES)


def _numbers(folder: Path, facts: dict[str, Any], name: str) -> str:
    table = read_parquet(folder / name, seal_of(facts))
    timeless = [column for column in table.column_names if not column.startswith("seconds")]
    return repr(table.select(timeless).to_pydict())  # repr: NaN equals itself, and floats are exact


def _extras(folders: Sequence[Path]) -> tuple[dict[str, Path], list[str]]:
    """Fork states and tables beside the cells, by their path in a results folder, and those that contradict."""
    chosen: dict[str, Path] = {}
    conflicts = []
    for folder in folders:
        for part in (ORIGINS_FOLDER, PROBES_FOLDER, SCORES_FOLDER):
            for path in sorted((folder / part).glob("[!.]*")):
                name = f"{part}/{path.name}"
                known = chosen.setdefault(name, path)
                if known != path and not path.is_dir() and known.read_bytes() != path.read_bytes():
                    conflicts.append(f"{name} ({known.parents[1]} and {folder})")
    return chosen, conflicts


def _refusal(conflicts: Sequence[str]) -> str:
    more = f", and {len(conflicts) - SHOWN} more" if len(conflicts) > SHOWN else ""
    return (
        f"merge: {len(conflicts)} with the same name and other numbers: {'; '.join(conflicts[:SHOWN])}{more}. They "
        "were made by other code, libraries or hardware; keep such folders apart: show and report take several"
    )


def _copy_cell(source: Path, folder: ResultsFolder, key: str) -> None:
    """Copy a cell, verified before and after, and give the copy its name by one rename."""
    seal = seal_of(read_cell_file(source / CELL_FILE)) or {}
    verify_files(source, seal)
    draft = folder.cells / f".{key}.merging"
    shutil.rmtree(draft, ignore_errors=True)
    shutil.copytree(source, draft)
    verify_files(draft, seal)
    _sync_tree(draft)
    if not publish_folder(draft, folder.cells / key):  # a run that failed is there, or one without checkpoints
        shutil.rmtree(folder.cells / key)
        publish_folder(draft, folder.cells / key)


def _copy_extra(source: Path, target: Path) -> None:
    if target.exists():
        return
    draft = target.with_name(f".{target.name}.merging")
    target.parent.mkdir(exist_ok=True)
    if source.is_dir():
        shutil.rmtree(draft, ignore_errors=True)
        shutil.copytree(source, draft)
        _sync_tree(draft)
    else:
        shutil.copyfile(source, draft)
        sync_file(draft)
    draft.rename(target)
    sync_names(target.parent)


def _sync_tree(folder: Path) -> None:
    for here, _, names in os.walk(folder):
        for name in names:
            sync_file(Path(here, name))
        sync_names(Path(here))
