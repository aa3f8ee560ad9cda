"""What there is to choose from, as rows for people: methods, tasks, regimes, presets, runs."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from vcpo_bench.bench.configuration import preset_names
from vcpo_bench.bench.store import read_json
from vcpo_bench.errors import UsageError
from vcpo_bench.records import CELL_FILE, CELLS, GRID_FILE, PARTIAL_SUFFIX


class Listing(NamedTuple):
    """A table: column names, then rows of equal length."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def listing(what: str, results: Path, presets: Path) -> Listing:
    """The table behind ``vcpo-bench ls WHAT``.

    Raises:
        UsageError: There is no such list.
    """
    kinds: dict[str, Callable[[], Listing]] = {
        "methods": methods,
        "tasks": tasks,
        "regimes": regimes,
        "presets": lambda: configurations(presets),
        "runs": lambda: runs(results),
    }
    if what not in kinds:
        close = difflib.get_close_matches(what, kinds, n=1)
        hint = f"did you mean {close[0]}?" if close else f"choose one of {', '.join(kinds)}"
        raise UsageError(f"ls {what}: no such list; {hint}")
    return kinds[what]()


def methods() -> Listing:
    """Every registered method, and plug-ins that failed to load with their error."""
    from vcpo_bench.methods import broken_plugins, method_names, parse_method

    rows = []
    for name in method_names():
        method = parse_method(name)
        anchors = ", ".join(sorted(set(method.anchors.values()))) or "-"
        rows.append((name, method.summary, method.reference, str(method.year or ""), anchors))
    rows += [(plugin.name, f"BROKEN: {plugin.error}", plugin.origin, "", "") for plugin in broken_plugins()]
    return Listing(("method", "what it does", "paper", "year", "ratios to"), rows)


def tasks() -> Listing:
    """Every task with its parameters and their defaults."""
    from vcpo_bench.bench.tasks import task_types

    rows = [
        (name, kind.summary, ", ".join(f"{key}={value}" for key, value in kind.parameters.items()) or "-")
        for name, kind in task_types().items()
    ]
    return Listing(("task", "what it asks", "parameters"), rows)


def regimes() -> Listing:
    """Every staleness regime with its options and their defaults; the last options are common to all."""
    from vcpo_bench.bench.staleness.expression import COMMON, OPTIONS, SUMMARIES

    described = {
        name: ", ".join(f"{key}: {option.legal}" for key, option in options.items()) or "-"
        for name, options in (OPTIONS | {"(all)": COMMON}).items()
    }
    return Listing(
        ("regime", "how the lag comes about", "options"),
        [(name, SUMMARIES[name], options) for name, options in described.items()],
    )


def configurations(presets: Path) -> Listing:
    """The presets with the comment they begin with."""
    rows = []
    for name in preset_names(presets):
        first = (presets / f"{name}.yaml").read_text().splitlines()[0]
        rows.append((name, first.lstrip("# ") if first.startswith("#") else ""))
    return Listing(("preset", "what for"), rows)


def runs(results: Path) -> Listing:
    """Every results folder below ``results`` with the state of its cells."""
    rows = []
    for grid in sorted(results.glob(f"**/{GRID_FILE}")):
        folder = grid.parent
        rows.append((str(folder), *_states(folder)))
    return Listing(("run", "asked for", "ended", "running or interrupted"), rows)


def _states(folder: Path) -> tuple[str, str, str]:
    asked = len(read_json(folder / GRID_FILE).get("cells", {}))
    cells = list((folder / CELLS).glob("*"))
    partial = sum(cell.name.endswith(PARTIAL_SUFFIX) for cell in cells)
    statuses = Counter(
        str(read_json(cell / CELL_FILE).get("status", "?")) for cell in cells if (cell / CELL_FILE).is_file()
    )
    ended = ", ".join(f"{count} {status}" for status, count in sorted(statuses.items())) or "0"
    return str(asked), ended, str(partial)
