"""What a results folder says about its cells: `cell.json` of each, and `grid.json` on which are controls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from vcpo_bench import records
from vcpo_bench.analysis.cell_values import check_key, check_values
from vcpo_bench.analysis.recorded_tables import Problem
from vcpo_bench.errors import DamagedResultError, UsageError

PARTIAL = "partial"
"""`status` of a cell that is running or was interrupted."""

_IDENTITY = {"task", "method", "regime", "staleness", "lr", "seed", "steps"}
_FACTS = ("status", "reason", "error", "steps_done", "seconds", "rules_version", "method_version")
_STATUSES = ("completed", "nan", "stopped_by", "error")
_LONGEST_NAME = 500
_AGAIN = "run the grid again to replace it"
_DELETE = "delete the cell's folder and run the grid again"


def read_cells(folder: Path, include_partial: bool) -> tuple[list[dict[str, Any]], list[Problem]]:
    """One row per cell of a results folder (columns of `analysis.results.Results.cells`), and damaged files.

    Raises:
        UsageError: It is not a results folder.
    """
    root = folder / records.CELLS
    if not root.is_dir():
        raise UsageError(f"{folder} is not a results folder: it has no {records.CELLS}/ inside")
    controls, problems = _read_controls(folder)
    rows = []
    for path in sorted(entry for entry in root.iterdir() if entry.is_dir()):
        partial = path.name.endswith(records.PARTIAL_SUFFIX)
        if (partial and not include_partial) or path.name.startswith("."):
            continue
        tables = _newest_checkpoint(path) if partial else path
        file = next((one for one in (tables, path) if (one / records.CELL_FILE).exists()), path) / records.CELL_FILE
        key = path.name.removesuffix(records.PARTIAL_SUFFIX)
        try:
            rows.append(_cell(file, tables, key, controls, partial))
        except DamagedResultError as error:
            problems.append(Problem(folder, str(file.relative_to(folder)), key, str(error)))
    return rows, problems


def _read_controls(folder: Path) -> tuple[dict[str, bool], list[Problem]]:
    path = folder / records.GRID_FILE
    if not path.exists():
        return {}, []
    try:
        grid = _read_json(path)
        return {key: bool(entry.get("control", False)) for key, entry in grid.get("cells", {}).items()}, []
    except (DamagedResultError, AttributeError):
        what = "is damaged, so which cells are controls is unknown; run the grid again to rewrite it"
        return {}, [Problem(folder, records.GRID_FILE, "", what)]


def _cell(file: Path, tables: Path, key: str, controls: dict[str, bool], partial: bool) -> dict[str, Any]:
    cell = _read_json(file)
    config = cell.get("config")
    if not isinstance(config, dict) or not _IDENTITY.issubset(config):
        raise DamagedResultError(f"has no usable 'config'; {_DELETE}")
    if odd := [name for name, value in config.items() if isinstance(value, str) and not _is_name(value)]:
        raise DamagedResultError(f"has a {odd[0]!r} that no run writes: control characters or too long; {_DELETE}")
    if not partial and cell.get("status") not in _STATUSES:
        raise DamagedResultError(f"has no valid 'status'; {_DELETE}")
    check_values(cell, config)
    check_key(cell, key)
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
        if entry.is_dir() and digits.isdigit() and (entry / records.STEPS_FILE).exists():
            numbered.append((int(digits), entry))
    return max(numbered)[1] if numbered else path


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DamagedResultError(f"cannot be read ({type(error).__name__}); {_AGAIN}") from error
    if not isinstance(content, dict):
        raise DamagedResultError(f"does not hold a JSON object; {_AGAIN}")
    return content


def _is_name(text: str) -> bool:
    """Whether a setting could be one of ours: a stranger's must not fill the page or drive the terminal."""
    return len(text) <= _LONGEST_NAME and text.isprintable()


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, str | int | float | bool)
