"""What goes into a LaTeX paper: escaped text, booktabs tables, a macro per number, and figures as PGF without LaTeX."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_mixed import MixedModeRenderer
from matplotlib.backends.backend_pgf import RendererPgf
from matplotlib.figure import Figure
from matplotlib.textpath import TextToPath

from vcpo_bench.files.atomic import write_text
from vcpo_bench.reports.document import Document, Table
from vcpo_bench.reports.numbers import Ledger

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "\u2212": "$-$",
    "\u2013": "--",
    "\u221e": r"$\infty$",
}


def escape(text: str) -> str:
    """Text that LaTeX prints as it is."""
    return "".join(_SPECIAL.get(letter, letter) for letter in " ".join(text.split()))


def booktabs(table: Table) -> str:
    """A `table` environment in the style of the booktabs package, numbers aligned right."""
    columns = "".join("r" if column in table.numeric else "l" for column in range(len(table.headings)))
    rows = [" & ".join(_entry(entry.text, entry.tone) for entry in row) + r" \\" for row in table.rows]
    return "\n".join(
        [
            r"% needs \usepackage{booktabs}",
            r"\begin{table}[t]",
            rf"  \caption{{{escape(table.caption)}}}",
            rf"  \label{{tab:{table.name}}}",
            r"  \centering\small",
            rf"  \begin{{tabular}}{{{columns}}}",
            r"    \toprule",
            "    " + " & ".join(escape(heading) for heading in table.headings) + r" \\",
            r"    \midrule",
            *(f"    {row}" for row in rows),
            r"    \bottomrule",
            r"  \end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _entry(text: str, tone: str) -> str:
    return rf"\textbf{{{escape(text)}}}" if tone == "bad" and text else escape(text)


def write_tables(document: Document, folder: Path) -> list[Path]:
    """Write `table-NAME.tex` for every table of a report, and `macros.tex`; returns the files."""
    found = [block for section in document.sections for block in section.blocks if isinstance(block, Table)]
    texts = {f"table-{table.name}.tex": booktabs(table) for table in found}
    texts["macros.tex"] = macros(document.ledger)
    for name, text in texts.items():
        write_text(folder / name, text)
    return [folder / name for name in texts]


def macros(ledger: Ledger) -> str:
    r"""A file that defines every number of the report: `\vcponum{final_reward-1a2b3c4d}` prints it as it is there."""
    lines = [
        r"% Every number of the report by its id: \vcponum{ID}. `vcpo-bench trace ID DIR` shows the rows behind it.",
        r"\newcommand{\vcponum}[1]{\csname vcponum@#1\endcsname}",
    ]
    for entry in sorted(ledger.numbers.values(), key=lambda one: one.id):
        lines.append(f"% {escape(entry.what)}: {escape(entry.about)}")
        lines.append(rf"\expandafter\def\csname vcponum@{entry.id}\endcsname{{{escape(entry.text)}}}")
    return "\n".join(lines) + "\n"


class _Renderer(RendererPgf):
    """Matplotlib's PGF renderer, but text is measured by matplotlib's own fonts: no LaTeX is started."""

    def draw_text(self, gc: Any, x: Any, y: Any, s: str, prop: Any, angle: Any, *args: Any, **options: Any) -> None:
        """Draw text with every special character escaped; the base class does so for percent and caret."""
        kept = "".join(letter if letter in "%^" else _SPECIAL.get(letter, letter) for letter in s)
        super().draw_text(gc, x, y, kept, prop, angle, *args, **options)  # type: ignore[no-untyped-call]

    def get_text_width_height_descent(self, s: str, prop: Any, ismath: Any) -> tuple[float, float, float]:
        """Size in display units, from the outlines of the drawing's own font."""
        width, height, descent = TextToPath().get_text_width_height_descent(s, prop, ismath=False)
        scale = self.dpi / 72
        return width * scale, height * scale, descent * scale


def to_pgf(figure: Figure) -> str:
    r"""The figure as a `pgfpicture` for `\input` (needs `\usepackage{pgf}`); for figures without images.

    Call inside `style.drawing`.
    """
    stream = io.StringIO()
    width, height = figure.get_size_inches()
    stream.write("% needs \\usepackage{pgf}\n\\begingroup\n\\makeatletter\n\\begin{pgfpicture}\n")
    stream.write(f"\\pgfpathrectangle{{\\pgfpointorigin}}{{\\pgfqpoint{{{width:f}in}}{{{height:f}in}}}}\n")
    stream.write("\\pgfusepath{use as bounding box, clip}\n")
    renderer: Any = _Renderer(figure, stream)  # type: ignore[no-untyped-call]
    mixed: Any = MixedModeRenderer(figure, width, height, figure.dpi, renderer)  # type: ignore[no-untyped-call]
    figure.draw(mixed)
    stream.write("\\end{pgfpicture}\n\\makeatother\n\\endgroup\n")
    return stream.getvalue()
