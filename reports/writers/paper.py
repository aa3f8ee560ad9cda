"""Figures and tables ready for a paper: exact widths, PDF, PNG, SVG and PGF, booktabs, a macro per number."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl

from vcpo_bench.errors import UsageError
from vcpo_bench.files.atomic import write_bytes, write_text
from vcpo_bench.naming.grammar import unknown_name
from vcpo_bench.progress import track
from vcpo_bench.reports.document import Picture
from vcpo_bench.reports.figure import Plot
from vcpo_bench.reports.plots.catalog import FIGURES, chosen, pictures
from vcpo_bench.reports.plots.letters import Letters, spell
from vcpo_bench.reports.plots.method_style import drawing
from vcpo_bench.reports.study import Study, open_study
from vcpo_bench.reports.writers.second_process import beside
from vcpo_bench.reports.writers.svg import lay_out, to_svg
from vcpo_bench.reports.writers.venues import find_venue, sheets

DOTS_PER_INCH = 300
"""Of PNG files, as venues ask."""


class Printing(NamedTuple):
    """What of a study is printed, and how.

    Attributes:
        venue: One of `venues.VENUES`, or sizes as `venues.find_venue` reads them.
        figures: Names of `plots.catalog.FIGURES`, or of one figure of a task; empty: all, and the tables.
        methods: Method expressions that figures and tables are restricted to; empty: all.
        forms: Of `FORMS`; empty: all.
    """

    venue: str
    figures: Sequence[str] = ()
    methods: Sequence[str] = ()
    forms: Sequence[str] = ()


def write_figures(
    results_folder: str | Path | Iterable[str | Path], out_dir: str | Path, choice: Printing, partial: bool = False
) -> list[Path]:
    """Write figures, each under its name, and where none is named the tables too.

    Each comes as `NAME.pdf`, `NAME.png` and `NAME.svg`, and as `NAME.pgf` unless it holds an image (the heat maps);
    beside them `NAME.txt` with the caption. Where all are written there are also a booktabs `table-NAME.tex` per table,
    and `macros.tex`.

    Args:
        results_folder: A folder that `vcpo-bench run` wrote, or several.
        out_dir: Created if need be.
        choice: What is wanted.
        partial: Also show cells that are still running.

    Returns:
        The files written.

    Raises:
        UsageError: An unknown venue, form or name, a figure named that these results do not allow, or no results.
            Nothing was written then.
    """
    check(choice)
    sizes = find_venue(choice.venue)
    study = restricted(open_study(results_folder, partial), choice.methods)
    texts: dict[str, str] = {}
    if choice.figures:  # one that cannot be drawn is known before anything is written
        plots = iter(list(_drawn(chosen(study, list(choice.figures)), choice.venue, required=True)))
    else:
        from vcpo_bench.reports.report import build
        from vcpo_bench.reports.writers.tex import table_texts

        texts = table_texts(build(study), sizes.column, sizes.text)
        every = pictures(study, *FIGURES)
        plots = _drawn(track(every, "drawing figures for print", len(every)), choice.venue, required=False)
    folder = Path(out_dir)
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for plot in plots:
        with drawing(sizes.font, sizes.letters):
            written += write_plot(plot, folder, sizes.letters, choice.forms)
    return written + [_text(folder / f"{name}.tex", content) for name, content in texts.items()]


def check(choice: Printing) -> None:
    """Refuse a venue and forms that there are not.

    Raises:
        UsageError: See `write_figures`.
    """
    find_venue(choice.venue)
    for form in choice.forms:
        if form not in FORMS:
            raise UsageError(f"--as: {unknown_name('form', form, FORMS)}")


def _drawn(wanted: Iterable[Picture], venue: str, required: bool) -> Iterator[Plot]:
    """The figures that the data allow, at the sizes of a venue."""
    column, text = sheets(venue)
    letters = find_venue(venue).letters
    for picture in wanted:
        sheet = text if picture.wide else column
        with drawing(sheet.font_size, letters):
            plot = picture.draw(sheet)
            if plot is None and required:
                raise UsageError(f"--figure {picture.name}: these results do not have what it needs: {picture.needs}")
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


def write_plot(plot: Plot, folder: Path, letters: Letters, forms: Sequence[str] = ()) -> list[Path]:
    """Write one figure in some forms, or in every form it has; call inside `method_style.drawing`.

    Its layout is settled once, so the forms agree.
    """
    spell(plot.figure, letters)
    lay_out(plot.figure)
    image = any(axes.images for axes in plot.figure.axes)
    wanted = [form for form in forms or FORMS if form != "pgf" or not image]
    here, there = wanted[::2], wanted[1::2]
    with (
        mpl.rc_context({"figure.constrained_layout.use": False}),  # or saving would ask for a layout anew
        beside(lambda form: FORMS[form](plot, letters), there) as draw,
    ):
        drawn = {form: FORMS[form](plot, letters) for form in here} | {form: draw(form) for form in there}
    written = [folder / f"{plot.name}.{form}" for form in wanted]
    for path, form in zip(written, wanted, strict=True):
        write_bytes(path, drawn[form])
    return [*written, _text(folder / f"{plot.name}.txt", plot.caption + "\n")]


def _pdf(plot: Plot, letters: Letters) -> bytes:
    stream = io.BytesIO()
    plot.figure.savefig(stream, format="pdf", metadata={"CreationDate": None, "Creator": None, "Producer": None})
    return stream.getvalue()


def _png(plot: Plot, letters: Letters) -> bytes:
    stream = io.BytesIO()
    plot.figure.savefig(stream, format="png", dpi=DOTS_PER_INCH, facecolor="white", metadata={"Software": None})
    return stream.getvalue()


def _svg(plot: Plot, letters: Letters) -> bytes:
    """With text that a drawing program can edit; where it lacks the font, one that is like it."""
    with mpl.rc_context({"svg.fonttype": "none"}):
        text = to_svg(plot)
    family = letters.families[-1]
    return text.replace(f"'{family}'", f"'{family}', {letters.others}").encode()


def _pgf(plot: Plot, letters: Letters) -> bytes:
    from vcpo_bench.reports.writers.tex import to_pgf

    return to_pgf(plot.figure).encode()


FORMS: dict[str, Callable[[Plot, Letters], bytes]] = {"pdf": _pdf, "png": _png, "svg": _svg, "pgf": _pgf}
"""The bytes of a figure, by the ending of its file. PGF is text for LaTeX: no figure with an image has it."""


def _text(path: Path, content: str) -> Path:
    write_text(path, content)
    return path
