"""From the tables of a cell to rows of metrics, one per update. Independent of wandb."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from vcpo_bench.files.parquet import read_parquet
from vcpo_bench.records import EVALS_FILE, EVENTS_FILE, STEPS_FILE
from vcpo_bench.records.table_file import seal_beside

Metrics = dict[str, Any]


def history(tables: Path, first: int, ended: bool) -> Iterator[tuple[int, Metrics]]:
    """The metrics of a cell by update: update t and the evaluation after t updates share a row.

    Columns become `steps/NAME` and `evals/NAME`; `events/EVENT` counts events.

    Args:
        tables: Folder with the tables: an ended cell or a checkpoint.
        first: First update to return.
        ended: The cell has ended. Before, an evaluation waits for its update, which is recorded later.

    Yields:
        Update and metrics, in order. Missing and non-finite values are left out.
    """
    rows: defaultdict[int, Metrics] = defaultdict(dict)
    steps = _read(tables / STEPS_FILE)
    _enter(rows, "steps", steps)
    _enter(rows, "evals", _read(tables / EVALS_FILE))
    for event in _read(tables / EVENTS_FILE):
        row, name = rows[event["step"]], f"events/{event['event']}"
        row[name] = row.get(name, 0) + 1
    end = max(rows, default=-1) + 1 if ended else len(steps)
    yield from ((step, rows[step]) for step in sorted(rows) if first <= step < end)


def _read(path: Path) -> list[Metrics]:
    return list(read_parquet(path, seal_beside(path)).to_pylist()) if path.exists() else []


def _enter(rows: defaultdict[int, Metrics], table: str, recorded: Sequence[Metrics]) -> None:
    for record in recorded:
        kept = {name: value for name, value in record.items() if name != "step" and _is_there(value)}
        rows[record["step"]] |= {f"{table}/{name}": value for name, value in kept.items()}


def _is_there(value: object) -> bool:
    return value not in (None, "") and (not isinstance(value, float) or math.isfinite(value))
