"""What was run and on what: settings of the cells, code, environment and hardware."""

from __future__ import annotations

from vcpo_bench.analysis.wording import counted
from vcpo_bench.reports.document import Block, Table, TableCell
from vcpo_bench.reports.formatting import by_size, duration, in_words, rate
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.report_section import ReportSection
from vcpo_bench.reports.study import Study

_NOT_SETTINGS = ("key", "method", "staleness", "seed", "lr", "task", "regime")
_FACTS = ("status", "reason", "error", "steps_done", "seconds", "rules_version", "method_version", "control", "partial")
_HIDDEN = {*_FACTS, *_NOT_SETTINGS, "path", "provenance"}
_READABLE = 600


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """The settings, then the provenance."""
    return [_protocol(study), _provenance(study)]


def _protocol(study: Study) -> Table:
    """The settings that the cells share, and the values of those they do not."""
    cells = study.results.cells
    shown = ["task", "regime", "staleness", "lr", "seed", "method"]
    shown += sorted(name for name in cells.columns if name not in _HIDDEN)
    rows, unused = [], []
    for name in shown:
        words = rate if name == "lr" else in_words
        values = [words(value) for value in sorted(cells[name].dropna().unique(), key=by_size)]
        if values and _listed(values) in ("none", "off"):
            unused.append(name)
        elif values:
            rows.append([TableCell(name), TableCell(_listed(values))])
    if unused:
        rows.append([TableCell("none or off"), TableCell(", ".join(unused))])
    rows.append(
        [TableCell("rules version"), TableCell(", ".join(sorted({str(v) for v in cells["rules_version"].dropna()})))]
    )
    return Table("protocol", "Settings of the cells; several values are axes of the grid.", ["setting", "values"], rows)


def _provenance(study: Study) -> Table:
    """Where and with what the cells ran: every distinct value with its number of cells."""
    values: dict[str, dict[str, int]] = {}
    for source in study.results.cells["provenance"]:
        for name, value in source.items():
            text = in_words(value)
            per_value = values.setdefault(str(name), {})
            per_value[text] = per_value.get(text, 0) + 1
    rows = []
    for name in sorted(values):
        found = sorted(values[name].items())
        one = len(found) == 1
        rows.append(
            [TableCell(name), TableCell("; ".join(v if one else f"{v} ({counted(n, 'cell')})" for v, n in found[:12]))]
        )
    total = float(study.results.cells["seconds"].fillna(0).sum())
    rows.append([TableCell("time in training"), TableCell(duration(total) if total else "not recorded")])
    return Table("provenance", "Code, environment and hardware of the cells.", ["fact", "value"], rows)


def _listed(values: list[str]) -> str:
    """The values, or how many there are if the list is too long to read, as of keys of other cells."""
    named = [value or "none" for value in values]
    return (
        ", ".join(named) if sum(map(len, named)) < _READABLE else f"{len(named)} values, from {named[0]} to {named[-1]}"
    )


SECTIONS = (ReportSection("protocol", "Protocol and environment", 230, blocks),)
