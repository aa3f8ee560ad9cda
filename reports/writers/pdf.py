"""The report as PDF, typeset by Typst: vector figures, embedded fonts, no date, bit-identical every time."""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import matplotlib as mpl
import typst

from vcpo_bench.files.atomic import write_bytes
from vcpo_bench.reports.document import Block, Picture, Prose, Section, Table, sentence
from vcpo_bench.reports.figure import Plot, Sheet
from vcpo_bench.reports.plots.method_style import drawing
from vcpo_bench.reports.plots.sheet import legend_strip
from vcpo_bench.reports.report import build
from vcpo_bench.reports.sections.cell_table import all_cells
from vcpo_bench.reports.study import Study, open_study
from vcpo_bench.reports.writers.galleries import Gallery, in_galleries
from vcpo_bench.reports.writers.svg import to_svg
from vcpo_bench.reports.writers.tex_tables import without_constants

PRINT = Sheet(width=6.69, panel_height=1.45, font_size=8.0)
"""Figures for the text width of A4 with margins of 2 cm; their legends stand above them, once on each page."""

_WIDE = 8
_FONT = re.compile(r"(?P<size>font: [^;\"']*?px )(?:'[^']*'|[^;\"'])+")

_Block = dict[str, Any]
"""What the template is told of a block."""

MOST_CELLS = 60
"""Cells that are printed one by one; more are two pages and only in the tables."""


def write_pdf(results_folder: str | Path | Iterable[str | Path], out_pdf: str | Path, partial: bool = False) -> Path:
    """Write the report of one results folder, or of several that are pooled, as PDF.

    Args:
        results_folder: A folder that `vcpo-bench run` wrote, or several.
        out_pdf: The file to write; its folder must exist.
        partial: Also show cells that are still running.

    Returns:
        The path of the written file.

    Raises:
        UsageError: No folder holds a cell, or they ran under different versions of the rules.
    """
    target = Path(out_pdf)
    write_bytes(target, typeset(open_study(results_folder, partial)), typed=True)
    return target


def typeset(study: Study) -> bytes:
    """The PDF of a study's report."""
    document = build(study)
    sections = [*document.sections, Section("all-cells", "Appendix: all cells", [_cells(study)])]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        content = [_section(section, folder) for section in sections]
        report = {"title": document.title, "sections": [one for one in content if one["blocks"]]}
        (folder / "report.json").write_text(json.dumps(report, sort_keys=True), encoding="utf-8")
        template = resources.files("vcpo_bench.reports.writers") / "templates" / "report.typ"
        (folder / "report.typ").write_text(template.read_text(encoding="utf-8"), encoding="utf-8")
        pdf: bytes = typst.compile(str(folder / "report.typ"), format="pdf", root=name, ignore_system_fonts=True)
    return pdf


def _cells(study: Study) -> Table | Prose:
    """A table of the cells, or, where it would fill pages that nobody reads, where they are."""
    count = len(study.cells)
    if count <= MOST_CELLS:
        return all_cells(study)
    writes = "vcpo-bench results export DIR --out tables"
    return Prose([sentence(f"The {count} cells are in cells.csv, which {writes} writes.")])


def _section(section: Section, folder: Path) -> dict[str, Any]:
    blocks: list[_Block] = []
    for position, block in enumerate(section.blocks):
        content = _block(block, folder, f"{section.anchor}-{position}.svg")
        if content is not None:
            blocks.append(content)
    galleries = in_galleries(blocks, lambda block: block.get("methods"))
    return {"title": section.title, "blocks": [_under_legend(one, folder) for one in galleries]}


def _under_legend(block: _Block | Gallery[_Block], folder: Path) -> _Block:
    """Figures with the file of their legend; other blocks as they are."""
    if not isinstance(block, Gallery):
        return block
    file = "legend-" + hashlib.sha256("\n".join(block.legend).encode()).hexdigest()[:16] + ".svg"
    if block.legend:
        with _lettered():
            strip = Plot("legend", "", "", legend_strip(PRINT, block.legend))
            (folder / file).write_text(_with_letters(to_svg(strip)), encoding="utf-8")
    return {"kind": "gallery", "legend": file if block.legend else None, "figures": block.figures}


def _block(block: Block, folder: Path, file: str) -> _Block | None:
    if isinstance(block, Prose):
        sentences = [{"text": one.text, "tone": one.tone} for one in block.sentences]
        return {"kind": "prose", "bullets": block.bullets, "sentences": sentences}
    if isinstance(block, Table):
        return _table(block)
    return _figure(block, folder, file)


def _figure(picture: Picture, folder: Path, file: str) -> _Block | None:
    with _lettered():
        plot = picture.draw(PRINT)
        if plot is None:
            return None
        (folder / file).write_text(_with_letters(to_svg(plot)), encoding="utf-8")
    return {"kind": "figure", "file": file, "title": plot.title, "caption": plot.caption, "methods": plot.methods}


@contextmanager
def _lettered() -> Iterator[None]:
    """Figures drawn inside keep their text, which Typst then sets."""
    with drawing(PRINT.font_size), mpl.rc_context({"svg.fonttype": "none"}):
        yield


def _with_letters(svg: str) -> str:
    """The drawing in the letters of the page."""
    return _FONT.sub(r"\g<size>'Libertinus Serif'", svg)


def _table(full: Table) -> _Block:
    table, said = without_constants(full)
    rows = [[{"text": entry.text, "tone": entry.tone} for entry in row] for row in table.rows]
    # Columns of numbers take what they need; the widest column of text shares what is left.
    longest = [
        max([len(heading), *(len(row[i].text) for row in table.rows)]) for i, heading in enumerate(table.headings)
    ]
    texts = [length for column, length in enumerate(longest) if column not in table.numeric]
    widths = [1 if length == max(texts, default=0) and length > 30 else 0 for length in longest]
    return {
        "kind": "table",
        "caption": f"{table.caption} In all rows: {said}." if said else table.caption,
        "headings": table.headings,
        "rows": rows,
        "numeric": sorted(table.numeric),
        "widths": widths,
        "size": 7.0 if len(table.headings) > _WIDE else 8.0,
    }
