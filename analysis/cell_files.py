"""What a results folder says about its cells: `cell.json` of each, and `grid.json` on which are controls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from vcpo_bench import records
from vcpo_bench.analysis.recorded_tables import Problem
from vcpo_bench.errors import DamagedResultError
from vcpo_bench.files.checksums import Seal, read_sealed, seal_of
from vcpo_bench.files.folders import is_folder
from vcpo_bench.files.regular import IS_LINK
from vcpo_bench.progress import track
from vcpo_bench.records.cell_file import read_cell_file
from vcpo_bench.records.layout import cells_in

PARTIAL = "partial"
"""`status` of a cell that is running or was interrupted."""

_AGAIN = "run the grid again to replace it"

_FACTS = ("status", "reason", "error", "steps_done", "seconds", "rules_version", "method_version")


def read_cells(folder: Path, include_partial: bool) -> tuple[list[dict[str, Any]], list[Problem], dict[str, Seal]]:
    """The cells of a results folder.

    Returns:
        One row per cell (columns of `analysis.results.Results.cells`); damaged files; and, by the `path` of each ended
        cell that has checksums, these.

    Raises:
        UsageError: It is not a results folder.
    """
    root = cells_in(folder)
    controls, problems = _read_controls(folder)
    rows: list[dict[str, Any]] = []
    seals: dict[str, Seal] = {}
    folders = sorted(entry for entry in root.iterdir() if entry.is_dir() or entry.is_symlink())
    for path in track(folders, "reading cells", len(folders)):
        partial = path.name.endswith(records.PARTIAL_SUFFIX)
        if (partial and not include_partial) or path.name.startswith("."):
            continue
        key = path.name.removesuffix(records.PARTIAL_SUFFIX)
        if path.is_symlink():
            problems.append(Problem(folder, str(path.relative_to(folder)), key, IS_LINK))
            continue
        file = path / records.CELL_FILE
        try:
            tables = _newest_checkpoint(path) if partial else path
            file = tables / records.CELL_FILE
            if partial and not file.exists():  # it has begun, and written no checkpoint yet
                continue
            facts = read_cell_file(file, ended=not partial)
            rows.append(_cell(facts, tables, controls, partial))
            files = seal_of(facts)
            if files is not None and not partial:
                seals[str(tables)] = files
        except DamagedResultError as error:
            problems.append(Problem(folder, str(file.relative_to(folder)), key, f"{error.what}; {_AGAIN}"))
        except OSError as error:
            what = f"cannot be read ({error.strerror})"
            problems.append(Problem(folder, str(file.relative_to(folder)), key, what))
    return rows, problems, seals


def _read_controls(folder: Path) -> tuple[dict[str, bool], list[Problem]]:
    path = folder / records.GRID_FILE
    if not path.exists():
        return {}, []
    try:
        grid = read_sealed(path)
        return {key: bool(entry.get("control", False)) for key, entry in grid.get("cells", {}).items()}, []
    except (DamagedResultError, AttributeError):
        what = "is damaged, so which cells are controls is unknown; run the grid again to rewrite it"
    except OSError as error:
        what = f"cannot be read ({error.strerror}), so which cells are controls is unknown"
    return {}, [Problem(folder, records.GRID_FILE, "", what)]


def _cell(cell: dict[str, Any], tables: Path, controls: dict[str, bool], partial: bool) -> dict[str, Any]:
    key, config = cell["key"], cell["config"]
    row: dict[str, Any] = {"key": key, "parent": "", "fork_step": 0}  # earlier versions could not fork
    row |= {name: value if _is_scalar(value) else json.dumps(value, sort_keys=True) for name, value in config.items()}
    row |= {name: cell.get(name) for name in _FACTS}
    row |= {"control": controls.get(key, False), "partial": partial, "path": str(tables)}
    row["provenance"] = cell.get("provenance") or {}
    if partial:
        row["status"] = PARTIAL
    return row


def _newest_checkpoint(path: Path) -> Path:
    """The newest `checkpoint-*` folder of a partial cell: the one with the largest number that holds tables."""
    numbered = []
    for entry in path.glob("checkpoint-*"):
        digits = entry.name.removeprefix("checkpoint-")
        if is_folder(entry) and digits.isdigit() and (entry / records.STEPS_FILE).exists():
            numbered.append((int(digits), entry))
    return max(numbered)[1] if numbered else path


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, str | int | float | bool)
