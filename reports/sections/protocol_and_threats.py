"""What was run, on what, what failed, and what limits the conclusions: all read off the records."""

from __future__ import annotations

import json

from vcpo_bench import records
from vcpo_bench.reports.document import Entry, Prose, Sentence, Table, sentence
from vcpo_bench.reports.formatting import by_size, count, duration, listing, rate, whole
from vcpo_bench.reports.sections.cell_pages import anchor, why
from vcpo_bench.reports.study import Study

_NOT_SETTINGS = ("key", "method", "staleness", "seed", "lr", "task", "regime")
_FACTS = ("status", "reason", "error", "steps_done", "seconds", "rules_version", "method_version", "control", "partial")
_HIDDEN = {*_FACTS, *_NOT_SETTINGS, "path", "provenance"}
FEW_SEEDS = 5
_READABLE = 600


def failures(study: Study) -> list[Table | Prose]:
    """The cells that did not complete, with the reason, and damaged files."""
    cells = study.cells[study.cells["status"] != "completed"]
    blocks: list[Table | Prose] = []
    if len(cells):
        rows = [
            [
                Entry(str(cell["method"]), link=anchor(str(cell["key"]))),
                Entry(str(cell["task"])),
                Entry(str(cell["staleness"]), sort=float(cell["staleness"])),
                Entry(rate(cell["lr"]), sort=float(cell["lr"])),
                Entry(str(cell["seed"]), sort=float(cell["seed"])),
                Entry(str(cell["status"]), tone="bad" if cell["status"] == "error" else ""),
                Entry(whole(cell["steps_done"])),
                Entry(why(cell)),
            ]
            for _, cell in cells.iterrows()
        ]
        headings = ["method", "task", "lag", "lr", "seed", "ended as", "updates", "reason"]
        caption = (
            "Cells that did not complete. A cell that ended as nan is a result; one that ended in an error is not."
        )
        blocks.append(Table("failures", caption, headings, rows, numeric=frozenset({2, 3, 4, 6})))
    if study.results.problems:
        lines = [sentence(_local(study, problem), tone="bad") for problem in dict.fromkeys(study.results.problems)]
        blocks.append(Prose(lines, bullets=True))
    return blocks or [Prose([sentence("Every cell completed and every file could be read.")])]


def _local(study: Study, problem: str) -> str:
    """The sentence with paths from the results folder on: a report says nothing about where it was made."""
    for folder in study.results.folders:
        problem = problem.replace(str(folder), folder.resolve().name)
    return problem


def protocol(study: Study) -> Table:
    """The settings that the cells share, and the range of those they do not."""
    cells = study.results.cells
    shown = ["task", "regime", "staleness", "lr", "seed", "method"]
    shown += sorted(name for name in cells.columns if name not in _HIDDEN)
    rows = []
    for name in shown:
        values = [_text(value) for value in sorted(cells[name].dropna().unique(), key=by_size)]
        if values:
            rows.append([Entry(name), Entry(_listed(values))])
    rows.append([Entry("rules version"), Entry(", ".join(sorted({str(v) for v in cells["rules_version"].dropna()})))])
    return Table("protocol", "Settings of the cells; several values are axes of the grid.", ["setting", "values"], rows)


def provenance(study: Study) -> Table:
    """Where and with what the cells ran: every distinct value with its number of cells."""
    values: dict[str, dict[str, int]] = {}
    for source in study.results.cells["provenance"]:
        for name, value in source.items():
            text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
            per_value = values.setdefault(str(name), {})
            per_value[text] = per_value.get(text, 0) + 1
    rows = []
    for name in sorted(values):
        found = sorted(values[name].items())
        one = len(found) == 1
        rows.append([Entry(name), Entry("; ".join(v if one else f"{v} ({count(n, 'cell')})" for v, n in found[:12]))])
    total = float(study.results.cells["seconds"].fillna(0).sum())
    rows.append([Entry("time in training"), Entry(duration(total) if total else "not recorded")])
    return Table("provenance", "Code, environment and hardware of the cells.", ["fact", "value"], rows)


def threats(study: Study) -> Prose:
    """Threats to validity that can be read off the data."""
    cells = study.cells
    found: list[Sentence] = [sentence(note, tone="bad") for note in study.results.notes]
    seeds = cells.groupby(["task", "regime", "lr", "staleness", "method"])["seed"].nunique()
    if seeds.min() < FEW_SEEDS:
        fewest = count(int(seeds.min()), "seed")
        found.append(
            sentence(f"Few seeds: some comparisons rest on {fewest}; intervals are wide and may miss real effects.")
        )
    if seeds.nunique() > 1:
        found.append(sentence(f"Uneven budgets: between {seeds.min()} and {seeds.max()} seeds per method and setting."))
    if cells["lr"].nunique() == 1:
        found.append(
            sentence(
                "One learning rate: it ranks methods partly by which happens to be near its limit; "
                "a method that takes smaller steps may only look more stable."
            )
        )
    if cells["task"].nunique() == 1:
        found.append(sentence(f"One task ({cells['task'].iloc[0]}): nothing here shows that the ranking carries over."))
    if not bool(cells["control"].any()):
        found.append(sentence("No controls: whether the lag harms at all without correction was not measured."))
    if cells["steps"].nunique() > 1:
        lengths = listing([str(length) for length in sorted(cells["steps"].unique())])
        found.append(sentence(f"Runs of different planned length ({lengths} updates) are compared at their own ends."))
    lost = int((cells["status"] == "error").sum())
    if lost:
        found.append(
            sentence(f"{count(lost, 'cell')} ended in an error and {'is' if lost == 1 else 'are'} missing.", tone="bad")
        )
    found.append(sentence("The best evaluation picks a maximum of noisy values; compare final rewards."))
    version = f"this program's rules are version {records.RULES_VERSION}"
    found.append(sentence(f"Results are comparable within one version of the rules; {version}."))
    return Prose(found, bullets=True)


def _listed(values: list[str]) -> str:
    """The values, or how many there are where nobody would read them: keys of cells that step scales come from."""
    named = [value or "none" for value in values]
    return (
        ", ".join(named) if sum(map(len, named)) < _READABLE else f"{len(named)} values, from {named[0]} to {named[-1]}"
    )


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
