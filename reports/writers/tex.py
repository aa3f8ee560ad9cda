"""What goes into a LaTeX paper: booktabs tables, a macro per number, and figures as PGF without LaTeX."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_mixed import MixedModeRenderer
from matplotlib.backends.backend_pgf import RendererPgf
from matplotlib.figure import Figure
from matplotlib.textpath import TextToPath

from vcpo_bench.files.atomic import write_text
from vcpo_bench.reports.document import Document, Table
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.writers.tex_tables import COLUMN, TEXT, TableLayout, choose, parts, without_constants
from vcpo_bench.reports.writers.tex_text import SPECIAL, escape, prose


def booktabs(table: Table, column: float = COLUMN, text: float = TEXT) -> str:
    """A `table` or `table*` environment in the style of the booktabs package, numbers aligned right.

    Settings in which all rows agree are said in the caption. A table of more rows than fit a page becomes several.

    Args:
        table: The table.
        column: Width of one column of the paper, in inches.
        text: Width of its text, in inches.
    """
    lean, said = without_constants(table)
    how = choose(lean, column, text)
    pieces = parts(lean, how)
    packages = "booktabs" + (",graphicx" if how.scaled else "") + (",array" if how.wrapped >= 0 else "")
    found = [rf"% needs \usepackage{{{packages}}}"]
    for number, piece in enumerate(pieces, 1):
        part = f" (part {number} of {len(pieces)})" if len(pieces) > 1 else ""
        caption = table.caption + (f" In all rows: {said}." if said else "") + part
        found += _float(piece, how, caption, table.name + (f"-{number}" if number > 1 else ""))
    return "\n".join([*found, ""])


def _float(table: Table, how: TableLayout, caption: str, label: str) -> list[str]:
    columns = "".join(_column(place, place in table.numeric, how) for place in range(len(table.headings)))
    rows = [" & ".join(_entry(entry.text, entry.tone) for entry in row) + r" \\" for row in table.rows]
    name = "table*" if how.wide else "table"
    return [
        rf"\begin{{{name}}}[t]",
        rf"  \caption{{{prose(caption)}}}",
        rf"  \label{{tab:{label}}}",
        rf"  \centering\smallskip{how.size.command}\setlength{{\tabcolsep}}{{{how.size.gap:g}pt}}",
        *([r"  \resizebox{\linewidth}{!}{%"] if how.scaled else []),
        rf"  \begin{{tabular}}{{{columns}}}",
        r"    \toprule",
        "    " + " & ".join(escape(heading) for heading in table.headings) + r" \\",
        r"    \midrule",
        *(f"    {row}" for row in rows),
        r"    \bottomrule",
        r"  \end{tabular}" + ("}" if how.scaled else ""),
        rf"\end{{{name}}}",
    ]


def _column(place: int, numeric: bool, how: TableLayout) -> str:
    if place != how.wrapped:
        return "r" if numeric else "l"
    return rf">{{\ragged{'left' if numeric else 'right'}\arraybackslash}}p{{{how.room:g}pt}}"


def _entry(text: str, tone: str) -> str:
    return rf"\textbf{{{escape(text)}}}" if tone == "bad" and text else escape(text)


def table_texts(document: Document, column: float = COLUMN, text: float = TEXT) -> dict[str, str]:
    """`table-NAME` for every table of a report, and `macros`, with the content of their `.tex` files.

    Args:
        document: The report.
        column: Width of one column of the paper, in inches.
        text: Width of its text, in inches.
    """
    found = [block for section in document.sections for block in section.blocks if isinstance(block, Table)]
    texts = {f"table-{table.name}": booktabs(table, column, text) for table in found}
    return {**texts, "macros": macros(document.ledger)}


def write_tables(document: Document, folder: Path, column: float = COLUMN, text: float = TEXT) -> list[Path]:
    """Write `table_texts`; returns the files."""
    texts = table_texts(document, column, text)
    for name, content in texts.items():
        write_text(folder / f"{name}.tex", content)
    return [folder / f"{name}.tex" for name in texts]


def macros(ledger: Ledger) -> str:
    r"""A file that defines every number of the report: `\vcponum{final_reward-1a2b3c4d}` prints it as it is there."""
    lines = [
        r"% Every number of the report by its id: \vcponum{ID}. Its rows: vcpo-bench results trace ID DIR.",
        r"\newcommand{\vcponum}[1]{\ifcsname vcponum@#1\endcsname\csname vcponum@#1\endcsname\else"
        r"\PackageError{vcpo-bench}{No number #1}{The results changed, or the id is misspelled.}\fi}",
    ]
    for entry in sorted(ledger.numbers.values(), key=lambda one: one.id):
        lines.append(f"% {escape(entry.what)}: {escape(entry.about)}")
        lines.append(rf"\expandafter\def\csname vcponum@{entry.id}\endcsname{{{escape(entry.text)}}}")
    return "\n".join(lines) + "\n"


_MATH = re.compile(r"(\$[^$]*\$)")


def _plain(text: str) -> str:
    return "".join(letter if letter in "%^" else SPECIAL.get(letter, letter) for letter in text)


class _Renderer(RendererPgf):
    """Matplotlib's PGF renderer, but text is measured by matplotlib's own fonts: no LaTeX is started."""

    def draw_text(self, gc: Any, x: Any, y: Any, s: str, prop: Any, angle: Any, *args: Any, **options: Any) -> None:
        """Draw text with every special character escaped outside mathematics; the base class escapes % and ^."""
        pieces = _MATH.split(s) if options.get("ismath") else [s]
        kept = "".join(piece if place % 2 else _plain(piece) for place, piece in enumerate(pieces))
        super().draw_text(gc, x, y, kept, prop, angle, *args, **options)  # type: ignore[no-untyped-call]

    def get_text_width_height_descent(self, s: str, prop: Any, ismath: Any) -> tuple[float, float, float]:
        """Size in display units, from the outlines of the drawing's own font."""
        width, height, descent = TextToPath().get_text_width_height_descent(s, prop, ismath=ismath)
        scale = self.dpi / 72
        return width * scale, height * scale, descent * scale


def to_pgf(figure: Figure) -> str:
    r"""The figure as a `pgfpicture` for `\input` (needs `\usepackage{pgf}`); for figures without images.

    Call inside `style.drawing`.
    """
    # An artist that asks for a renderer while it is drawn gets that of the figure's canvas. The canvas of an earlier
    # SVG would leave the figure at 72 dots per inch, and a drawing begun at 100 would go on at 72% of its size.
    FigureCanvasAgg(figure)
    dpi, figure.dpi = figure.dpi, 72
    stream = io.StringIO()
    width, height = figure.get_size_inches()
    stream.write("% needs \\usepackage{pgf}\n\\begingroup\n\\makeatletter\n\\begin{pgfpicture}\n")
    stream.write(f"\\pgfpathrectangle{{\\pgfpointorigin}}{{\\pgfqpoint{{{width:f}in}}{{{height:f}in}}}}\n")
    stream.write("\\pgfusepath{use as bounding box, clip}\n")
    renderer: Any = _Renderer(figure, stream)  # type: ignore[no-untyped-call]
    mixed: Any = MixedModeRenderer(figure, width, height, figure.dpi, renderer)  # type: ignore[no-untyped-call]
    figure.draw(mixed)
    figure.dpi = dpi
    stream.write("\\end{pgfpicture}\n\\makeatother\n\\endgroup\n")
    return stream.getvalue()
