"""One self-contained HTML file: no network, no dates, bit-identical for the same results."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from markupsafe import Markup

from vcpo_bench.analysis.results import as_folders
from vcpo_bench.files.atomic import write_text
from vcpo_bench.progress import track
from vcpo_bench.reports.document import Document, Picture, Prose, Table
from vcpo_bench.reports.figure import Array, Plot, Sheet
from vcpo_bench.reports.plots.method_style import line_style
from vcpo_bench.reports.report import build
from vcpo_bench.reports.sections.cell_curves import spark_svg
from vcpo_bench.reports.sections.cell_pages import CellPage, cell_pages, grouped
from vcpo_bench.reports.study import Study, open_study
from vcpo_bench.reports.writers.galleries import Gallery, in_galleries
from vcpo_bench.reports.writers.second_process import beside
from vcpo_bench.reports.writers.svg import draw_svg, inline, swatch
from vcpo_bench.reports.writers.templated import rendered
from vcpo_bench.reports.writers.tex_tables import without_constants

SCREEN = Sheet(width=9.0, panel_height=2.0, font_size=9.0)
_SHARED = ("task", "lr", "seeds")
"""Settings without a column where they have one value: columns with results need the room."""
NARROW = Sheet(width=4.4, panel_height=1.9, font_size=9.0, most_columns=1)
"""For a phone: panels one below another, in letters that can be read there."""


@dataclass(frozen=True)
class Figure:
    """A figure of the page: its SVG, that for a phone, what its legend names, and the data of its lines as JSON."""

    name: str
    caption: str
    svg: Markup
    narrow: Markup
    methods: list[str]
    data: Markup


_Shown = Table | Prose | Figure


@dataclass(frozen=True)
class DrawnSection:
    """A section of the page, with its pictures drawn."""

    anchor: str
    title: str
    folded: bool
    blocks: list[_Shown | Gallery[_Shown]]


def write_page(
    results_folder: str | Path | Iterable[str | Path], out_html: str | Path | None = None, partial: bool = False
) -> Path:
    """Write the report of one results folder, or of several that are pooled, as one HTML file.

    Args:
        results_folder: A folder that `vcpo-bench run` wrote, or several.
        out_html: The file to write; its folder must exist. None: `report.html` in the first results folder.
        partial: Also show cells that are still running.

    Returns:
        The path of the written file.

    Raises:
        UsageError: No folder holds a cell, or they ran under different versions of the rules.
    """
    folders = as_folders(results_folder)
    target = page_path(folders, out_html)
    write_text(target, render(open_study(folders, partial), home=target.parent), typed=out_html is not None)
    return target


def page_path(results_folders: Sequence[Path], out_html: str | Path | None) -> Path:
    """Where the page goes: to the file the user named, or into the first results folder."""
    return results_folders[0] / "report.html" if out_html is None else Path(out_html)


def render(study: Study, home: Path | None = None, live: bool = False) -> str:
    """The page of a study.

    Args:
        study: What was recorded.
        home: The folder it will lie in, from which it links the cells' files; None: it does not.
        live: It is served, and loads itself again when a cell has advanced.
    """
    return render_document(build(study), cell_pages(study, home), live)


def render_document(document: Document, cells: list[CellPage], live: bool = False) -> str:
    """A document as a page, with a page per cell at its end if there are any."""
    return rendered(
        "page.html.j2",
        *("page.js", "cells.js", "filter.js"),
        *(["live.js"] if live else []),
        helpers={"table": _is(Table), "prose": _is(Prose), "gallery": _is(Gallery)},
        document=document,
        sections=_drawn(document),
        groups=grouped(cells),
        linked=any(cell.files for cell in cells),
        live=live,
        spark_svg=spark_svg,
        swatch=lambda name: swatch(line_style(name)),
    )


def _is(kind: type) -> Callable[[object], bool]:
    return lambda block: isinstance(block, kind)


def _drawn(document: Document) -> list[DrawnSection]:
    """The sections that have something to show: the open ones, then those that are folded."""
    pictures = [block for section in document.sections for block in section.blocks if isinstance(block, Picture)]
    with beside(_narrow, pictures[: len(pictures) * 7 // 8]) as narrow:  # they take longer than the wide ones
        numbered = enumerate(track(pictures, "drawing figures", len(pictures)))
        figures = iter([_figure(picture, f"f{index}", narrow) for index, picture in numbered])
    sections = []
    lean = _without_shared(document)
    for section in document.sections:
        every = (next(figures) if isinstance(block, Picture) else lean(block) for block in section.blocks)
        if blocks := [block for block in every if block is not None]:
            sections.append(DrawnSection(section.anchor, section.title, section.folded, in_galleries(blocks, _legend)))
    return sorted(sections, key=lambda one: one.folded)


def _without_shared(document: Document) -> Callable[[Table | Prose], Table | Prose]:
    """What drops columns in which every row of every table agrees, of `_SHARED`, and says so in the caption."""
    tables = [block for section in document.sections for block in section.blocks if isinstance(block, Table)]
    values: dict[str, set[str]] = {name: set() for name in _SHARED}
    for table in tables:
        for place, heading in enumerate(table.headings):
            if heading in values:
                values[heading] |= {row[place].text for row in table.rows}
    shared = [name for name, own in values.items() if len(own) == 1]

    def lean(block: Table | Prose) -> Table | Prose:
        if not isinstance(block, Table):
            return block
        table, said = without_constants(block, shared)
        return replace(table, caption=f"{table.caption} In all rows: {said}.") if said else block

    return lean


def _legend(block: _Shown) -> list[str] | None:
    return block.methods if isinstance(block, Figure) else None


def _narrow(picture: Picture) -> str:
    drawn = draw_svg(picture, NARROW)
    return drawn[1] if drawn else ""


def _figure(picture: Picture, prefix: str, narrow: Callable[[Picture], str]) -> Figure | None:
    shown, small = draw_svg(picture, SCREEN), narrow(picture)
    if shown is None:
        return None
    plot, text = shown
    small = small and inline(small, f"n{prefix}", plot.caption)
    svgs = Markup(inline(text, prefix, plot.caption)), Markup(small)
    return Figure(plot.name, plot.caption, *svgs, plot.methods, _json(_data(plot)))


def _data(plot: Plot) -> dict[str, object]:
    """What the page's script needs: where the panels are in the SVG, their scales, and the numbers of the lines."""
    width, height = plot.figure.get_size_inches() * 72
    panels = []
    for label, axes in zip(plot.panels, plot.figure.axes, strict=False):
        box = axes.get_position()
        frame = [box.x0 * width, (1 - box.y1) * height, box.x1 * width, (1 - box.y0) * height]
        panels.append({"label": label, "box": _rounded(frame), "x": _rounded(axes.get_xlim())})
    shared: list[list[float | None]] = []
    lines = []
    for line in plot.lines:
        x = _rounded(line.x)
        if x not in shared:
            shared.append(x)
        entry: dict[str, object] = {"panel": line.panel, "name": line.name, "x": shared.index(x), "y": _rounded(line.y)}
        if line.low is not None and line.high is not None:
            entry |= {"low": _rounded(line.low), "high": _rounded(line.high)}
        lines.append(entry)
    names = {
        "name": plot.name,
        "xName": plot.x_name,
        "yName": plot.y_name,
        "places": plot.places,
        "blocks": plot.blocks,
        "methods": plot.methods,
    }
    return {**names, "panels": panels, "xs": shared, "lines": lines}


def _rounded(values: Iterable[float] | Array) -> list[float | None]:
    numbers = [float(f"{float(value):.4g}") for value in np.asarray(values)]
    return [None if math.isnan(one) or math.isinf(one) else int(one) if one == int(one) else one for one in numbers]


def _json(value: object) -> Markup:
    """JSON that can stand inside a script element whatever strings it holds."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))
