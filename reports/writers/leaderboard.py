"""A leaderboard as a folder of static files: a page, and the entries it shows. No server, no network."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from vcpo_bench.analysis.comparison.board_settings import settings_text, unusual_settings
from vcpo_bench.analysis.comparison.leaderboard import PLACE, Entry, is_name, read_entry, rows_of
from vcpo_bench.analysis.comparison.normalized_rewards import normalize
from vcpo_bench.analysis.csv_text import without_formulas
from vcpo_bench.errors import UsageError
from vcpo_bench.files.atomic import replacing, write_text
from vcpo_bench.files.folders import made, refuse_link
from vcpo_bench.files.regular import check_regular
from vcpo_bench.reports.formatting import fixed, interval, rate
from vcpo_bench.reports.study import Study
from vcpo_bench.reports.writers.templated import rendered

ENTRIES = "entries"
"""Folder of the entries in a site."""
_Row = tuple[Entry, Mapping[str, Any]]


@dataclass(frozen=True)
class Board:
    """Rows that compare.

    Attributes:
        rules_version: Of the rules under which they ran.
        last_evaluations: The score of a run is the mean reward of so many evaluations at its end.
        settings: In words.
        rows: Cells of the table by its headings.
    """

    rules_version: str
    last_evaluations: int
    settings: str
    rows: list[dict[str, str]]

    @property
    def tasks(self) -> str:
        """The tasks it has, by name."""
        return ", ".join(dict.fromkeys(row["task"] for row in self.rows))


def entry_of(study: Study, name: str, title: str, by: str) -> Entry:
    """What a study contributes to a leaderboard.

    Raises:
        UsageError: The name cannot be that of a file.
    """
    if not is_name(name):
        raise UsageError(f"--name {name!r}: use letters, digits, '-', '_' and '.'; it becomes the name of a file")
    origins = [one for one in study.results.cells["provenance"] if isinstance(one, dict)]
    versions = _each(
        f"vcpo-bench {one.get('vcpo_bench', '?')}, commit {str(one.get('commit'))[:10]}" for one in origins
    )
    machine = _each(str(one.get("processor") or one.get("hardware") or one.get("platform") or "?") for one in origins)
    rules = str(study.results.cells["rules_version"].iloc[0])
    scores = normalize(study.results).table
    cells = study.results.cells.set_index("key").loc[scores["key"]]
    scores["task"] = cells["task"].to_numpy()  # as asked for, without the settings that a comparison adds
    rows = rows_of(scores, unusual_settings(cells))
    return Entry(name, title or name, by, machine, versions, rules, len(cells), rows)


def _each(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(texts)) or "unknown"


def write_site(site: Path, entries: Sequence[Entry]) -> list[Path]:
    """Write or update a leaderboard.

    Entries that are in the folder already stay, unless one of the same name is given. All are checked first.

    Args:
        site: Folder of the site; created if need be.
        entries: New or changed entries.

    Returns:
        The files written.

    Raises:
        UsageError: A link stands in for the folder of the entries.
        DamagedResultError: An entry in the folder is none.
    """
    folder = site / ENTRIES
    new = {one.name: one for one in entries}
    refuse_link(folder)
    there = sorted(folder.glob("*.json"))
    for path in there:
        check_regular(path)
    shown = {path.stem: read_entry(path) for path in there if path.stem not in new} | new
    site.mkdir(parents=True, exist_ok=True)
    made(site, ENTRIES)
    written = []
    for one in entries:
        write_text(folder / f"{one.name}.json", one.text(), below=site)
        with replacing(folder / f"{one.name}.csv", below=site) as file:
            without_formulas(pd.DataFrame(_flat(one))).to_csv(file, index=False)
        written += [folder / f"{one.name}.json", folder / f"{one.name}.csv"]
    write_text(site / "index.html", render(list(shown.values())))
    return [site / "index.html", *written]


def _flat(entry: Entry) -> list[dict[str, Any]]:
    return [dict(row) | {"settings": settings_text(row["settings"])} for row in entry.rows]


def render(entries: Sequence[Entry]) -> str:
    """The page; the same bytes for the same entries."""
    return rendered("leaderboard.html.j2", "page.js", "filter.js", boards=boards(entries), entries=entries)


def boards(entries: Sequence[Entry]) -> list[Board]:
    """The boards: the newest rules first, and within them the settings nearest to the defaults."""
    found: dict[tuple[str, int, str], list[_Row]] = {}
    for one in entries:
        for row in one.rows:
            board = (one.rules_version, one.last_evaluations, settings_text(row["settings"]))
            found.setdefault(board, []).append((one, row))
    made = [(len(rows[0][1]["settings"]), Board(*board, _in_words(rows))) for board, rows in found.items()]
    made.sort(key=lambda pair: (pair[0], _numbers(pair[1].settings), pair[1].last_evaluations))
    made.sort(key=lambda pair: _numbers(pair[1].rules_version), reverse=True)
    return [board for _, board in made]


def _numbers(text: str) -> tuple[list[int], str]:
    """Sort key of a version, or of settings: its numbers, so that 10.0 comes after 2.0."""
    return [int(part) for part in re.findall(r"[0-9]+", text)], text


def _in_words(rows: list[_Row]) -> list[dict[str, str]]:
    """The rows of a board, the best of each task, regime and lag first, and those without a score last."""
    place = ("task", "regime", "lag")
    rows.sort(key=lambda pair: (*(pair[1][name] for name in place), -_score(pair[1]), pair[0].name))
    return [
        {name: str(row[name]) for name in PLACE}
        | {"lr": rate(float(row["lr"])), "study": one.name, "seeds": str(row["seeds"])}
        | {"score": fixed(row["score"], 3), "95%": _bounds(row["low"], row["high"])}
        | {"collapsed": f"{row['failed']}/{row['judged']}"}
        for one, row in rows
    ]


def _score(row: Mapping[str, Any]) -> float:
    return -math.inf if row["score"] is None else float(row["score"])


def _bounds(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else interval(low, high)
