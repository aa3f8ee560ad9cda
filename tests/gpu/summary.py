"""The measurements of a folder as Markdown tables, for docs/benchmarks/gpu.md."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def page(folder: Path) -> str:
    """All measurements, stage by stage; those that failed say why."""
    found = [json.loads(path.read_text()) for path in sorted(folder.glob("stage*.json"))]
    return "\n".join(line for facts in found for line in _section(facts))


def _section(facts: dict[str, Any]) -> Iterator[str]:
    yield f"## Stage {facts['stage']}: {facts['name']}"
    yield ""
    where = facts.get("gpu", "CPU") if facts["device"] != "cpu" else "CPU"
    sizes = ", tiny sizes: the numbers mean nothing" if facts["tiny"] else ""
    yield f"{facts['date'][:10]}, {where}, torch {facts['versions']['torch']}, {facts['seconds']:.0f} s{sizes}."
    yield ""
    if facts["status"] != "ok":
        yield f"**{facts['status']}**: {facts['error']}"
    else:
        yield from _table(facts["result"])
    yield ""


def _table(result: dict[str, Any]) -> Iterator[str]:
    """Lists of rows as tables, everything else as one row each."""
    plain = {key: value for key, value in result.items() if not _is_rows(value)}
    if plain:
        yield "| what | value |"
        yield "|---|---|"
        for key, value in plain.items():
            yield f"| {key} | {_text(value)} |"
    for key, rows in result.items():
        if _is_rows(rows):
            names = list(rows[0])
            yield ""
            yield f"{key}:"
            yield ""
            yield f"| {' | '.join(names)} |"
            yield "|" + "---|" * len(names)
            for row in rows:
                yield f"| {' | '.join(_text(row[name]) for name in names)} |"


def _is_rows(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_text(one)}" for key, one in value.items())
    return str(value).replace("|", "/")
