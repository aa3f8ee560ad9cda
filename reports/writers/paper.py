"""Figures and tables ready for a paper: exact widths, PDF, SVG and PGF, booktabs, a macro per number."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from vcpo_bench.errors import UsageError
from vcpo_bench.files.atomic import write_bytes, write_text
from vcpo_bench.naming.grammar import unknown_name
from vcpo_bench.progress import track
from vcpo_bench.reports.document import Document, Picture
from vcpo_bench.reports.figure import Plot, Sheet
from vcpo_bench.reports.plots.method_style import drawing
from vcpo_bench.reports.plots.paper_figures import PUBLISHED
from vcpo_bench.reports.report import build
from vcpo_bench.reports.study import Study, open_study
from vcpo_bench.reports.writers.svg import to_svg
from vcpo_bench.reports.writers.tex import table_texts, to_pgf


@dataclass(frozen=True)
class Venue:
    """What a venue's style file leaves for figures.

    Attributes:
        column: Width of one column, in inches.
        text: Width of the whole text, in inches.
        font: Size of labels in points; tick labels and legends are one smaller, and 7 at least.
        panel: Height of a row of panels, in inches.
        height: Height of a whole figure, in inches, at most: a slide with its title leaves no more.
    """

    column: float
    text: float
    font: float = 8.0
    panel: float = 1.35
    height: float = math.inf


VENUES = {
    "icml": Venue(3.25, 6.75),
    "neurips": Venue(5.5, 5.5),
    "acl": Venue(3.03, 6.3),
    "nature": Venue(3.5, 7.2),
    "beamer": Venue(5.5, 5.5, font=10.0, panel=1.6, height=2.8),
}

_CUSTOM = re.compile(r"(?P<width>[0-9.]+)(?:x(?P<height>[0-9.]+))?in(?:@(?P<font>[0-9.]+)pt)?")


def find_venue(text: str) -> Venue:
    """The venue of that name, or sizes of the user's own: `4in`, `4x1.5in`, `4x1.5in@9pt` (width, panel height, font).

    Raises:
        UsageError: It is neither, or no figure has that size.
    """
    custom = _CUSTOM.fullmatch(text)
    if text in VENUES:
        return VENUES[text]
    try:
        width, height, font = (float(custom[name] or usual) for name, usual in _USUAL) if custom else (0.0, 0.0, 0.0)
    except ValueError:
        width = height = font = 0.0
    if not (1.5 <= width <= 40 and 0.5 <= height <= 20 and 7 <= font <= 40):
        raise UsageError(
            f"no venue {text!r}: choose one of {', '.join(VENUES)}, or give width, panel height and font size such as "
            "4x1.5in@9pt (at least 1.5 and 0.5 inches, and 7 points)"
        )
    return Venue(width, width, font, height)


_USUAL = (("width", 0.0), ("height", 1.35), ("font", 8.0))


def sheets(venue: str) -> tuple[Sheet, Sheet]:
    """The sheets of one column and of the whole text width.

    Raises:
        UsageError: See `find_venue`.
    """
    sizes = find_venue(venue)
    return (
        Sheet(sizes.column, sizes.panel, sizes.font, legend=True, most_columns=2, most_height=sizes.height),
        Sheet(sizes.text, sizes.panel, sizes.font, legend=True, most_columns=4, most_height=sizes.height),
    )


def write_figures(
    results_folder: str | Path | Iterable[str | Path],
    out_dir: str | Path,
    venue: str,
    only: Sequence[str] = (),
    methods: Sequence[str] = (),
) -> list[Path]:
    """Write every figure of the report and those figures of the papers that the data allow, each under its name.

    Each comes as `NAME.pdf` and `NAME.svg`, and as `NAME.pgf` unless it holds an image (the heat maps); beside
    them `NAME.txt` with the caption, a booktabs `table-NAME.tex` per table, and `macros.tex`.

    Args:
        results_folder: A folder that `vcpo-bench run` wrote, or several.
        out_dir: Created if need be.
        venue: One of `VENUES`, or sizes as `find_venue` reads them.
        only: Names of the figures and tables that are wanted, or `macros`; nothing else is written; empty: all.
        methods: Method expressions that figures and tables are restricted to; empty: all.

    Returns:
        The files written.

    Raises:
        UsageError: Unknown venue or name, a wanted figure that these results do not allow, or no results. Nothing was
            written then.
    """
    sizes = find_venue(venue)
    study = restricted(open_study(results_folder), methods)
    document = build(study)
    texts = table_texts(document, sizes.column, sizes.text)
    pictures = _pictures(study, document)
    names = [*(one.name for one in pictures), *texts]
    if unknown := [name for name in only if name not in names]:
        raise UsageError(f"--only {unknown[0]}: {unknown_name('figure or table', unknown[0], names)}")
    wanted = [one for one in pictures if not only or one.name in only]
    plots = _drawn(track(wanted, "drawing figures for print", len(wanted)), venue, required=bool(only))
    if only:  # a figure that cannot be drawn is known before anything is written
        plots = iter(list(plots))
    folder = Path(out_dir)
    written: list[Path] = []
    folder.mkdir(parents=True, exist_ok=True)
    for plot in plots:
        with drawing(sizes.font):
            written += write_plot(plot, folder)
    tables = [_text(folder / f"{name}.tex", content) for name, content in texts.items() if not only or name in only]
    return written + tables


def _drawn(pictures: Iterable[Picture], venue: str, required: bool) -> Iterator[Plot]:
    """The figures that the data allow, at the sizes of a venue."""
    column, text = sheets(venue)
    for picture in pictures:
        sheet = text if picture.wide else column
        with drawing(sheet.font_size):
            plot = picture.draw(sheet)
            if plot is None and required:
                raise UsageError(f"--only {picture.name}: these results do not have what that figure shows")
            if plot is not None:
                plot.figure.set_figheight(min(plot.figure.get_figheight(), sheet.most_height))
        if plot is not None:
            yield plot


def restricted(study: Study, methods: Sequence[str]) -> Study:
    """The study of some methods; the synchronous runs stay, since scores are normalized by them.

    Raises:
        UsageError: A method did not run.
    """
    for name in methods:
        if name not in study.methods:
            raise UsageError(f"--methods: {unknown_name('method of these results', name, study.methods)}")
    if not methods:
        return study
    cells = study.results.cells
    return Study(study.results.select(cells.loc[cells["method"].isin(methods) | (cells["staleness"] == 0), "key"]))


def _pictures(study: Study, document: Document) -> list[Picture]:
    """The figures of the report, then those of the papers."""
    blocks = [block for section in document.sections for block in section.blocks]
    published = [Picture(name, partial(draw, study)) for name, draw in PUBLISHED.items()]
    return [*(block for block in blocks if isinstance(block, Picture)), *published]


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
