"""JSON lines: verl's `file` logger, prime-rl, tinker-cookbook, event logs, and any file with one object per row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vcpo_bench.analysis.logs.encoding import encoding_of
from vcpo_bench.analysis.logs.not_yet import NotYetError
from vcpo_bench.analysis.logs.readers.events import Events
from vcpo_bench.analysis.logs.rows import LogRows

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
