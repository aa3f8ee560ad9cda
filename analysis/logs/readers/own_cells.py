"""Our own results: one cell of a results folder, finished or still running."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from vcpo_bench import records
from vcpo_bench.analysis.logs.errors import NotYetError
from vcpo_bench.analysis.logs.rows import LogRows
from vcpo_bench.analysis.results import NO_CHECKPOINT, load
from vcpo_bench.errors import UsageError


def is_cell(path: Path) -> bool:
    """Whether a folder is a cell."""
    return path.is_dir() and path.parent.name == records.CELLS


def read_cell(path: Path, rows: LogRows) -> str:
    """Read the updates and evaluations of one cell.

    Returns:
        How the cell ended (`records.Status`), or `"partial"`.

    Raises:
        UsageError: The cell is damaged or has no updates.
    """
    try:
        results = load(path.parent.parent, include_partial=True)
    except UsageError as error:
        if path.name.endswith(records.PARTIAL_SUFFIX):
            raise NotYetError(str(error)) from error
        raise
    key = path.name.removesuffix(records.PARTIAL_SUFFIX)
    chosen = results.select([key])
    if chosen.cells.empty:
        raise NotYetError(f"{path} cannot be read: {'; '.join(map(str, results.problems)) or NO_CHECKPOINT}")
    steps = chosen.steps.drop(columns="key")
    numeric = steps.select_dtypes("number").dropna(axis=1, how="all")  # NaN everywhere: the method has no such number
    if "step" not in numeric and results.damaged_keys():
        remedy = f"vcpo-bench results check {path.parent.parent} --set-aside, then run it again"
        raise UsageError(f"{path}: {results.problems[0]}; {remedy}")
    if "step" not in numeric:
        raise NotYetError(f"{path}: no update is recorded in it; nothing can be diagnosed")
    if "share_clipped" in numeric and not numeric["share_clipped"].any():
        numeric = numeric.drop(columns="share_clipped")  # a method that never clips; our anchor is never silent
    order = numeric["step"].to_numpy(dtype=np.float64)
    for position, values in enumerate(numeric.drop(columns="step").to_dict("records")):
        rows.add({str(name): value for name, value in values.items()}, "steps", float(order[position]), "step")
    for row in chosen.evals.to_dict("records"):
        rows.add({"eval_reward": row["sampled_reward"]}, "evals", float(row["step"]), "step")
    return str(chosen.cells["status"].iloc[0])


def cells_of(path: Path) -> list[Path]:
    """The cells of a results folder, or of the folder `cells` in it."""
    root = path if path.name == records.CELLS and any(path.glob(f"*/{records.CELL_FILE}")) else path / records.CELLS
    return (
        sorted(one for one in root.iterdir() if one.is_dir() and not one.name.startswith(".")) if root.is_dir() else []
    )


def refuse_moved_cells(path: Path) -> None:
    """Raise `UsageError` where a folder is a cell, or holds some, but no results folder is around it."""
    found = [path, *path.glob("*")]
    if any((one / records.CELL_FILE).is_file() for one in found):
        raise UsageError(f"{path}: a cell is read where it was written; put it back as RESULTS/{records.CELLS}/KEY")
