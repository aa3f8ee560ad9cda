"""JSON lines: verl's `file` logger, prime-rl, tinker-cookbook, event logs, and any file with one object per row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vcpo_bench.analysis.logs.errors import NotYetError
from vcpo_bench.analysis.logs.rows import LogRows
from vcpo_bench.analysis.logs.values import encoding_of, number, step_number

AXIS = "policy_version"


class Events:
    """Collects events and gives one row per policy version: each metric's mean over the events of one kind.

    A batch has many rollouts, each an event of its own; a row of a table is their mean.
    """

    def __init__(self) -> None:
        self._sums: dict[float, dict[str, tuple[float, int]]] = {}

    def take(self, row: dict[str, Any]) -> bool:
        """Take a line; False where it is no event."""
        kind, metrics = row.get("event"), row.get("metrics")
        if not isinstance(kind, str) or not isinstance(metrics, dict):
            return False
        step = step_number(row.get(AXIS))
        if step is None:
            return True
        sums = self._sums.setdefault(step, {})
        for name, raw in metrics.items():
            value = number(raw)
            if value is not None:
                total, count = sums.get(f"{kind}/{name}", (0.0, 0))
                sums[f"{kind}/{name}"] = total + value, count + 1
        return True

    def write(self, rows: LogRows, file: str) -> None:
        """Add the rows, in the order of versions."""
        for step in sorted(self._sums):
            row = {name: total / count for name, (total, count) in self._sums[step].items()}
            rows.add(row, file, step, AXIS)


_DEEPEST = 8
"""Levels of objects within objects that are read."""


def read_jsonl(path: Path, rows: LogRows) -> None:
    """Read every row; lines that are damaged, such as half of the last one, are counted and left out.

    Raises:
        UsageError: The file holds no JSON object.
    """
    found, events = 0, Events()
    for row in objects(path, rows):
        found += 1
        if events.take(row):
            continue
        data = row.get("data")
        if isinstance(data, dict):  # verl: the metrics are one level down
            step = row.get("step")
            rows.add({"step": step, **data} if "step" not in data else data, path.name)
        else:
            rows.add(flat(row), path.name)
    events.write(rows, path.name)
    if not found:
        raise NotYetError(f"{path} holds no JSON object; is it a log?")


def objects(path: Path, rows: LogRows) -> Iterator[dict[str, Any]]:
    """The objects of a file of JSON lines, one after another."""
    with path.open(encoding=encoding_of(path), errors="replace") as lines:
        for line in lines:
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):  # also numbers of more than 4,300 digits
                rows.add_bad_line(path.name)
                continue
            if isinstance(row, dict):
                yield row
            else:
                rows.add_bad_line(path.name)


def flat(row: dict[str, Any], prefix: str = "", depth: int = 0) -> dict[str, Any]:
    """Nested objects as names joined by `/`; what lies deeper than any logger puts it is left out."""
    if not any(type(value) is dict for value in row.values()) and not prefix:
        return row
    result: dict[str, Any] = {}
    for name, value in row.items():
        if not isinstance(value, dict):
            result[prefix + name] = value
        elif depth < _DEEPEST:
            result |= flat(value, f"{prefix}{name}/", depth + 1)
    return result
