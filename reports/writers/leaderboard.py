"""A leaderboard as a folder of static files: a page, and the entries it shows. No server, no network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from vcpo_bench.analysis.comparison.leaderboard import GROUP, Entry, is_name, read_entry, rows_of
from vcpo_bench.analysis.csv_text import without_formulas
from vcpo_bench.errors import UsageError
from vcpo_bench.files.atomic import replacing, write_text
from vcpo_bench.reports.formatting import fixed, interval, rate
from vcpo_bench.reports.study import Study
from vcpo_bench.reports.writers.html import resource

ENTRIES = "entries"
"""Folder of the entries in a site."""


def entry_of(study: Study, name: str, title: str, by: str) -> Entry:
    """What a study contributes to a leaderboard.

    Args:
        study: The results.
        name: Of the entry's files.
        title: In words.
        by: Who ran it.

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
    rows = rows_of(study.findings("compare").tables["scores"])
    return Entry(name, title or name, by, machine, versions, rules, len(study.results.cells), rows)


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
        DamagedResultError: An entry in the folder is none.
    """
    folder = site / ENTRIES
    kept = {path.stem: read_entry(path) for path in sorted(folder.glob("*.json"))} if folder.is_dir() else {}
    shown = kept | {one.name: one for one in entries}
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for one in entries:
        write_text(folder / f"{one.name}.json", one.text())
        with replacing(folder / f"{one.name}.csv") as draft:
            without_formulas(pd.DataFrame(list(one.rows))).to_csv(draft, index=False)
        written += [folder / f"{one.name}.json", folder / f"{one.name}.csv"]
    write_text(site / "index.html", render(list(shown.values())))
    return [site / "index.html", *written]


def render(entries: Sequence[Entry]) -> str:
    """The page; the same bytes for the same entries."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    script = resource("page.js") + resource("filter.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    boards = [
        (version, board_rows([one for one in entries if one.rules_version == version])) for version in rules(entries)
    ]
    return environment.from_string(resource("leaderboard.html.j2")).render(
        boards=boards, entries=entries, style=Markup(resource("page.css")), script=Markup(script), script_hash=digest
    )


def rules(entries: Sequence[Entry]) -> list[str]:
    """Versions of the rules, the newest first."""
    return sorted({one.rules_version for one in entries}, reverse=True)


def board_rows(entries: Sequence[Entry]) -> list[dict[str, str]]:
    """The rows of all entries, the best of each task, regime and lag first."""
    rows = [(one, row) for one in entries for row in one.rows]
    place = ("task", "regime", "lag")
    rows.sort(key=lambda pair: (*(pair[1][name] for name in place), -(pair[1]["score"] or 0.0), pair[0].name))
    return [
        {name: str(row[name]) for name in GROUP}
        | {"lr": rate(float(row["lr"])), "study": one.name, "seeds": str(row["seeds"])}
        | {"score": fixed(row["score"], 3), "95%": _bounds(row["low"], row["high"])}
        | {"failed": f"{row['failed']}/{row['judged']}"}
        for one, row in rows
    ]


def _bounds(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else interval(low, high)
