"""Two results folders side by side: what changed in settings, code and environment, and which conclusions differ."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from vcpo_bench.analysis.intervals import ENOUGH
from vcpo_bench.analysis.results import Results
from vcpo_bench.analysis.wording import counted, verdict
from vcpo_bench.files.atomic import write_text
from vcpo_bench.reports.document import Document, Prose, Section, Table, TableCell, sentence
from vcpo_bench.reports.formatting import MISSING, by_size, fixed, in_words, interval, rate
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.study import Study, open_study
from vcpo_bench.reports.writers.html import render_document

_OUTCOME = ("key", "status", "reason", "error", "steps_done", "seconds", "control", "partial", "path", "provenance")
_PLACE = ["task", "regime", "lr", "staleness", "method", "control"]


@dataclass(frozen=True)
class Diff:
    """What differs between two results, as a document; `text` is the same for a terminal."""

    document: Document

    @property
    def text(self) -> str:
        """Sections as plain text, tables with aligned columns."""
        lines: list[str] = []
        for section in self.document.sections:
            lines.append(section.title)
            for block in section.blocks:
                if isinstance(block, Prose):
                    lines += [f"  {one.text}" for one in block.sentences]
                elif isinstance(block, Table):
                    rows = [[entry.text for entry in row] for row in block.rows]
                    lines += [f"  {line}" for line in _aligned([block.headings, *rows])]
            lines.append("")
        return "\n".join(lines)


def diff(first: str | Path, second: str | Path) -> Diff:
    """Compare two results folders.

    Raises:
        UsageError: One of them holds no results.
    """
    a, b = open_study(first), open_study(second)
    sections = [
        Section("both", "Cells", [_cells(a, b)]),
        Section("changes", "Settings, code and environment", [_changes(a.results, b.results)]),
        Section("conclusions", "Conclusions", [_conclusions(a, b)]),
        Section("scores", "Scores side by side", [_scores(a, b)]),
    ]
    title = f"vcpo-bench results diff: {Path(first).resolve().name} (A) and {Path(second).resolve().name} (B)"
    return Diff(Document(title, sections, Ledger()))


def write_diff(first: str | Path, second: str | Path, out_html: str | Path) -> Path:
    """Write the comparison of two results folders as one HTML file and return its path."""
    target = Path(out_html)
    write_text(target, render_document(diff(first, second).document, []), typed=True)
    return target


def _cells(a: Study, b: Study) -> Prose:
    keys_a, keys_b = set(a.cells["key"]), set(b.cells["key"])
    both = keys_a & keys_b
    text = f"A has {counted(len(keys_a), 'cell')}, B has {counted(len(keys_b), 'cell')}; {len(both)} have the same key."
    merged = a.cells.merge(b.cells, on="key", suffixes=("_a", "_b"))
    moved = merged[merged["final_reward_a"].ne(merged["final_reward_b"]) & merged["final_reward_a"].notna()]
    lines = [sentence(text)]
    if both:
        lines.append(sentence(f"Of these, {len(moved)} end at a different reward.", tone="bad" if len(moved) else ""))
    return Prose(lines)


def _changes(a: Results, b: Results) -> Table:
    """Every setting or fact whose set of values is not the same."""
    values_a, values_b = dict(_values(a)), dict(_values(b))
    rows = []
    for name in sorted({*values_a, *values_b}):
        before, after = values_a.get(name, []), values_b.get(name, [])
        if before != after:
            rows.append([TableCell(name), TableCell(_listed(before)), TableCell(_listed(after))])
    rows = rows or [[TableCell("nothing"), TableCell(MISSING), TableCell(MISSING)]]
    return Table("changes", "What has other values in B than in A.", ["what", "A", "B"], rows)


def _values(results: Results) -> Iterator[tuple[str, list[str]]]:
    for column in results.cells.columns:
        if column not in _OUTCOME:
            yield (
                str(column),
                [in_words(value) for value in sorted(results.cells[column].dropna().unique(), key=by_size)],
            )
    facts: dict[str, set[str]] = {}
    for source in results.cells["provenance"]:
        for name, value in source.items():
            facts.setdefault(f"provenance: {name}", set()).add(in_words(value))
    yield from ((name, sorted(found)) for name, found in facts.items())


def _conclusions(a: Study, b: Study) -> Table | Prose:
    """Pairs of methods at a lag whose verdict, from the paired interval, is not the same."""
    pairs_a, pairs_b = _verdicts(a), _verdicts(b)
    rows = []
    for place in sorted(set(pairs_a) & set(pairs_b)):
        (word_a, shown_a), (word_b, shown_b) = pairs_a[place], pairs_b[place]
        if word_a != word_b:
            lag, first, second = place
            texts = [str(lag), f"{first} against {second}", f"{word_a}: {shown_a}", f"{word_b}: {shown_b}"]
            rows.append([TableCell(text) for text in texts])
    common = counted(len(set(pairs_a) & set(pairs_b)), "comparison")
    if not rows:
        return Prose([sentence(f"No conclusion differs; {common} could be made in both.")])
    caption = f"Conclusions that differ, of {common} made in both: first minus second with its 95% interval."
    return Table("flips", caption, ["lag", "methods", "A", "B"], rows, numeric=frozenset({0}))


def _verdicts(study: Study) -> dict[tuple[int, str, str], tuple[str, str]]:
    found = {}
    for row in study.findings("compare").tables["pairs"].to_dict("records"):
        first, second = sorted((str(row["first"]), str(row["second"])))
        low, high, estimate = row["low"], row["high"], row["estimate"]
        if first != str(row["first"]):
            low, high, estimate = -high, -low, -estimate
        shown = f"{fixed(estimate)} {interval(low, high)}"
        word = verdict(low, high) if row["pairs"] >= ENOUGH else "too few pairs"
        found[int(row["staleness"]), first, second] = (word, shown)
    return found


def _scores(a: Study, b: Study) -> Table:
    """Final reward of every group that is in both."""
    merged = a.board.merge(b.board, on=_PLACE, suffixes=("_a", "_b"))
    rows = []
    for row in merged.to_dict("records"):
        change = row["final_reward_b"] - row["final_reward_a"]
        apart = (
            row["final_reward_low_b"] > row["final_reward_high_a"]
            or row["final_reward_high_b"] < row["final_reward_low_a"]
        )
        rows.append(
            [
                TableCell(str(row["task"])),
                TableCell(rate(row["lr"]), sort=row["lr"]),
                TableCell(str(row["staleness"]), sort=float(row["staleness"])),
                TableCell(str(row["method"])),
                *(_score(row, side) for side in ("a", "b")),
                TableCell(fixed(change), sort=change, tone="bad" if apart else ""),
                *(TableCell(f"{row[f'collapsed_{side}']}/{row[f'total_{side}']}") for side in ("a", "b")),
            ]
        )
    caption = (
        "Final reward (mean over seeds, 95% interval) in both; the change is marked where the intervals do not overlap."
    )
    headings = ["task", "lr", "lag", "method", "A", "B", "B - A", "collapsed A", "collapsed B"]
    return Table("scores", caption, headings, rows, numeric=frozenset({1, 2, 4, 5, 6, 7, 8}))


def _score(row: Mapping[Hashable, float], side: str) -> TableCell:
    low, high = row[f"final_reward_low_{side}"], row[f"final_reward_high_{side}"]
    value = row[f"final_reward_{side}"]
    return TableCell(f"{fixed(value)} {interval(low, high)}".strip(), sort=value)


def _listed(values: list[str]) -> str:
    return ", ".join(values[:12]) + (", ..." if len(values) > 12 else "") if values else MISSING


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
