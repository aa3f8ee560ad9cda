"""What there is to choose from, as rows for people: methods, tasks, regimes, presets, runs."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from vcpo_bench.bench.cells.preset_file import preset_names
from vcpo_bench.bench.cells.results_folder import read_json
from vcpo_bench.errors import UsageError
from vcpo_bench.naming.component import Component, parameters
from vcpo_bench.records import CELL_FILE, CELLS, GRID_FILE, PARTIAL_SUFFIX


class Listing(NamedTuple):
    """A table: column names, then rows of equal length."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def listing(what: str, results: Path, presets: Path) -> Listing:
    """The table behind `vcpo-bench ls WHAT`.

    Raises:
        UsageError: There is no such list.
    """
    kinds: dict[str, Callable[[], Listing]] = {
        "methods": methods,
        "parts": parts,
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
    """Every registered method with its defaults, and plug-ins that failed to load with their error."""
    from vcpo_bench.methods import broken_plugins, method_names

    rows = [_component(name) for name in method_names()]
    rows += [(plugin.name, "-", f"BROKEN: {plugin.error}", plugin.origin, "", "") for plugin in broken_plugins()]
    return Listing(_COMPONENT_COLUMNS, rows)


def parts() -> Listing:
    """Every part that can be added to a method with `+`."""
    from vcpo_bench.methods import part_names

    return Listing(_COMPONENT_COLUMNS, [_component(name) for name in part_names()])


_COMPONENT_COLUMNS = ("name", "acts on", "what it does", "paper", "defaults", "ratios to")


def _component(name: str) -> tuple[str, ...]:
    from vcpo_bench.methods.assembly.describe import describe

    facts = describe(name)
    paper = f"{facts.reference} ({facts.year})" if facts.year else facts.reference
    defaults = ", ".join(f"{parameter.name}={parameter.default}" for parameter in facts.parameters) or "-"
    anchors = ", ".join(sorted(set(facts.anchors.values()))) or "-"
    return (name, facts.acts_on, facts.summary, paper, defaults, anchors)


def method_page(name: str) -> list[str]:
    """What `vcpo-bench show method NAME` prints: formula, parameters, disagreements, coefficient against ratio."""
    from vcpo_bench.methods.assembly.describe import coefficient_curve, describe, draw_curve

    facts = describe(name)
    lines = [f"{name}: {facts.summary}", f"  paper      {facts.reference}", f"  formula    {facts.formula}"]
    lines += [f"  parameter  {p.name}={p.default}  ({p.legal})" for p in facts.parameters]
    lines += [f"  ratio      {what}: current / {anchor}" for what, anchor in facts.anchors.items()]
    lines += [f"  needs      {', '.join(facts.needs)}"] if facts.needs else []
    lines += (
        [f"  paper's own advantage and aggregation: {name}:paper = {facts.paper_parts}"] if facts.paper_parts else []
    )
    lines += [f"  differs    {remark}" for remark in facts.differences]
    if facts.expression:
        title = "  coefficient of a lone token against its ratio (+: A > 0, -: A < 0, shown as its size)"
        lines += ["", title, *draw_curve(coefficient_curve(facts.expression))]
    return lines


def tasks() -> Listing:
    """Every task with its parameters and their defaults."""
    from vcpo_bench.bench.tasks import TASKS

    rows = [
        (name, kind.summary, _parameters(kind), "needs --model" if kind.needs_language_model else "-")
        for name, kind in sorted(TASKS.kinds.items())
    ]
    return Listing(("task", "what it asks", "parameters", "language model"), rows)


def _parameters(kind: type[Component]) -> str:
    found = parameters(kind).items()
    return ", ".join(f"{key}={parameter.write(default)}" for key, (default, parameter) in found) or "-"


def regimes() -> Listing:
    """Every staleness regime with its options and their defaults; the last options are common to all."""
    from vcpo_bench.bench.regimes import REGIMES, Regime
    from vcpo_bench.naming.component import parameters

    common = {name: about.legal for name, (_, about) in parameters(Regime).items()}
    rows = []
    for name, kind in sorted(REGIMES.kinds.items()):
        own = {key: about.legal for key, (_, about) in parameters(kind).items() if key not in common}
        rows.append((name, kind.summary, ", ".join(f"{key}: {legal}" for key, legal in own.items()) or "-"))
    options = ", ".join(f"{key}: {legal}" for key, legal in common.items())
    rows.append(("(all)", "how the weights reach the sampler, in every regime", options))
    return Listing(("regime", "lag of a trajectory", "options"), rows)


def configurations(presets: Path) -> Listing:
    """The presets with the comment they begin with."""
    rows = []
    for name in preset_names(presets):
        first = (presets / f"{name}.yaml").read_text().splitlines()[0]
        rows.append((name, first.lstrip("# ") if first.startswith("#") else ""))
    return Listing(("preset", "what for"), rows)


def runs(results: Path) -> Listing:
    """Every results folder below `results` with the state of its cells."""
    rows = []
    for grid in sorted(results.glob(f"**/{GRID_FILE}")):
        folder = grid.parent
        try:
            rows.append((str(folder), *_states(folder)))
        except ValueError as error:
            rows.append((str(folder), "damaged", f"a file cannot be read: {error}", ""))
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
