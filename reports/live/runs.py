"""Results folders as a live page shows them: found anew at every look, drawn anew when a cell has advanced."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from vcpo_bench import records
from vcpo_bench.analysis.comparison.scoreboard import scoreboard
from vcpo_bench.errors import VcpoBenchError
from vcpo_bench.files.folders import is_folder
from vcpo_bench.reports.figure import Sheet
from vcpo_bench.reports.outcome import outcome
from vcpo_bench.reports.plots.catalog import pictures
from vcpo_bench.reports.study import open_study
from vcpo_bench.reports.writers.html import render
from vcpo_bench.reports.writers.svg import draw_svg, inline

CARD = Sheet(width=5.0, panel_height=1.3, font_size=9.0, most_columns=2, legend=True)


def find_runs(folders: Iterable[Path]) -> Iterator[Path]:
    """The results folders among these folders, and up to two levels below them; links are not followed."""
    for folder in folders:
        for level in ("", "*", "*/*"):
            found = sorted(folder.glob(f"{level}/{records.CELLS}") if level else [folder / records.CELLS])
            runs = [cells.parent for cells in found if is_folder(cells) and is_folder(cells.parent)]
            yield from runs
            if runs and not level:
                break


def state_of(folder: Path) -> str:
    """A word that changes whenever a cell of the folder advances."""
    seen = []
    for path in sorted((folder / records.CELLS).glob("*")):
        for entry in (path, *path.glob("checkpoint-*")):
            with suppress(OSError):  # a finished cell takes its own name meanwhile
                seen.append((str(entry), entry.stat().st_mtime_ns))
    return _short(repr(seen))


def name_of(folder: Path) -> str:
    """What a folder is called in addresses."""
    return _short(str(folder.resolve()))


def _short(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:16]


@dataclass(frozen=True)
class Card:
    """A run among others.

    Attributes:
        name: In addresses.
        folder: Where it is.
        progress: How far it is, in words.
        lines: What came out so far, or why that is not known.
        figure: Held-out reward over updates.
    """

    name: str
    folder: str
    progress: str
    lines: list[str]
    figure: Markup


def card_of(folder: Path) -> Card:
    """What is known of a run, from its results."""
    cells = [one.name for one in (folder / records.CELLS).glob("*") if not one.name.startswith(".")]
    running = sum(name.endswith(records.PARTIAL_SUFFIX) for name in cells)
    progress = f"{len(cells) - running} cells ended, {running} not ended"
    card = Card(name_of(folder), str(folder), progress, [], Markup(""))
    try:
        study = open_study(folder, partial=True)
        lines = list(outcome(scoreboard(study.results)))
        drawn = draw_svg(pictures(study, "reward-steps")[0], CARD)
    except (VcpoBenchError, OSError) as error:
        return Card(card.name, card.folder, progress, [str(error)], Markup(""))
    figure = Markup(inline(drawn[1], f"r{card.name}", drawn[0].caption)) if drawn else Markup("")
    return Card(card.name, card.folder, progress, lines, figure)


def page_of(folder: Path) -> str:
    """The whole report of a run so far, which reloads itself."""
    return render(open_study(folder, partial=True), live=True)
