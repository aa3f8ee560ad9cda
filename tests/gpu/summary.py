"""The measurements of a folder as Markdown tables, for docs/benchmarks/gpu.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ledger


def page(out: Path) -> str:
    """All measurements of a folder, stage by stage; those that did not end well say why, and what is known."""
    return "\n".join(line for facts in ledger.measurements(out) for line in section(facts))


def section(facts: dict[str, Any]) -> Iterator[str]:
    """One measurement."""
    yield f"## Stage {facts['stage']}: {facts['name']}"
    yield ""
    where = facts.get("gpu", facts["device"])
    sizes = ", tiny sizes: the numbers mean nothing" if facts["tiny"] else ""
    machine = f"{facts['date'][:10]}, {where}, torch {facts['versions']['torch']}" if "date" in facts else where
    yield f"{machine}, {facts.get('seconds', 0):.0f} s{sizes}."
    yield ""
    if facts["status"] != "ok":
        yield f"**{facts['status']}**: {facts.get('error', '')}"
        yield ""
    yield from _table(facts.get("result", {}))
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
            names = list(dict.fromkeys(name for row in rows for name in row))
            yield ""
            yield f"{key}:"
            yield ""
            yield f"| {' | '.join(names)} |"
            yield "|" + "---|" * len(names)
            for row in rows:
                yield f"| {' | '.join(_text(row.get(name, '')) for name in names)} |"


def _is_rows(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_text(one)}" for key, one in value.items())
    return str(value).replace("|", "/")
