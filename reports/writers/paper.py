"""Figures and tables ready for a paper: exact widths, PDF, SVG and PGF, booktabs, a macro per number."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from vcpo_bench.errors import UsageError
from vcpo_bench.files.atomic import write_bytes, write_text
from vcpo_bench.progress import track
from vcpo_bench.reports.document import Document, DrawPlot, Picture
from vcpo_bench.reports.figure import Plot, Sheet
from vcpo_bench.reports.plots.method_style import drawing
from vcpo_bench.reports.plots.paper_figures import PUBLISHED
from vcpo_bench.reports.report import build
from vcpo_bench.reports.study import Study, open_study
from vcpo_bench.reports.writers.svg import to_svg
from vcpo_bench.reports.writers.tex import to_pgf, write_tables


@dataclass(frozen=True)
class Venue:
    """Widths in inches of one column and of the whole text of a venue's style file."""

    column: float
    text: float


VENUES = {"icml": Venue(3.25, 6.75), "neurips": Venue(5.5, 5.5), "acl": Venue(3.03, 6.3)}

FONT_SIZE = 8.0
"""Of labels; tick labels and legends are 7 points, the smallest that is allowed in print."""


def sheets(venue: str) -> tuple[Sheet, Sheet]:
    """The sheets of one column and of the whole text width.

    Raises:
        UsageError: The venue is not one of `VENUES`.
    """
    if venue not in VENUES:
        raise UsageError(f"no venue {venue!r}: choose one of {', '.join(VENUES)}")
    widths = VENUES[venue]
    return (
        Sheet(widths.column, 1.35, FONT_SIZE, legend=True, most_columns=2),
        Sheet(widths.text, 1.35, FONT_SIZE, legend=True, most_columns=4),
    )


def write_figures(results_folder: str | Path | Iterable[str | Path], out_dir: str | Path, venue: str) -> list[Path]:
    """Write every figure of the report and those figures of the papers that the data allow, each under its name.

    Each comes as `NAME.pdf` and `NAME.svg`, and as `NAME.pgf` unless it holds an image (the heat maps); beside
    them `NAME.txt` with the caption, a booktabs `table-NAME.tex` per table, and `macros.tex`.

    Args:
        results_folder: A folder that `vcpo-bench run` wrote, or several.
        out_dir: Created if need be.
        venue: One of `VENUES`.

    Returns:
        The files written.

    Raises:
        UsageError: Unknown venue, or no results.
    """
    sheets(venue)
    study = open_study(results_folder)
    folder = Path(out_dir)
    folder.mkdir(parents=True, exist_ok=True)
    document = build(study)
    written: list[Path] = []
    pictures = list(_pictures(study, document, venue))
    for draw, sheet in track(pictures, "drawing figures for print", len(pictures)):
        with drawing(FONT_SIZE):
            plot = draw(sheet)
            if plot is not None:
                written += write_plot(plot, folder)
    return written + write_tables(document, folder)


def _pictures(study: Study, document: Document, venue: str) -> Iterator[tuple[DrawPlot, Sheet]]:
    column, text = sheets(venue)
    for section in document.sections:
        for block in section.blocks:
            if isinstance(block, Picture):
                yield block.draw, text if block.wide else column
    for draw, wide in PUBLISHED:
        yield partial(draw, study), text if wide else column


def write_plot(plot: Plot, folder: Path) -> list[Path]:
    """Write one figure in every form it has; call inside `style.drawing`. Its layout is final afterward."""
    nothing = {"CreationDate": None, "Creator": None, "Producer": None}
    stream = io.BytesIO()
    plot.figure.savefig(stream, format="pdf", metadata=nothing)
    pdf = folder / f"{plot.name}.pdf"
    write_bytes(pdf, stream.getvalue())
    # The layout is settled: the other forms must not differ from it.
    plot.figure.set_layout_engine("none")
    written = [
        pdf,
        _text(folder / f"{plot.name}.svg", to_svg(plot)),
        _text(folder / f"{plot.name}.txt", plot.caption + "\n"),
    ]
    if not any(axes.images for axes in plot.figure.axes):
        written.append(_text(folder / f"{plot.name}.pgf", to_pgf(plot.figure)))
    return written


def _text(path: Path, content: str) -> Path:
    write_text(path, content)
    return path
