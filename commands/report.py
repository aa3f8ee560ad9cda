"""`vcpo-bench report`: the results as a page, a PDF and figures."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vcpo_bench.commands.support.options import DEFAULT_OUT, Folders
from vcpo_bench.commands.support.outputs import check_file, check_folder
from vcpo_bench.commands.support.say import say
from vcpo_bench.commands.support.verb import Verb

if TYPE_CHECKING:
    from vcpo_bench.reports.writers.paper import Printing


def report(
    folders: Folders = None,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="HTML page to write.", show_default="report.html in the first results folder"
        ),
    ] = None,
    pdf: Annotated[Path | None, typer.Option(metavar="FILE", help="PDF to write as well.")] = None,
    figures: Annotated[
        str,
        typer.Option(
            metavar="VENUE",
            help="Also write all figures and tables for print: icml, neurips, iclr, jmlr, tmlr, acl, nature, beamer, "
            "or sizes such as 4x1.5in@9pt (width, panel height, font). They go next to the page.",
        ),
    ] = "",
    figure: Annotated[
        str,
        typer.Option(
            metavar="LIST", help="Write only these figures, such as ess-vs-collapse, for a venue; not the page."
        ),
    ] = "",
    venue: Annotated[
        str,
        typer.Option(metavar="VENUE", help="Venue of --figure, or sizes as for --figures.", show_default="iclr"),
    ] = "",
    form: Annotated[
        str,
        typer.Option(
            "--as", metavar="LIST", help="Forms of printed figures, of pdf, png, svg, pgf.", show_default="all"
        ),
    ] = "",
    methods: Annotated[
        str, typer.Option(metavar="LIST", help="Methods in the printed figures and tables, instead of all.")
    ] = "",
    partial: Annotated[
        bool, typer.Option("--partial", metavar="", help="Include cells that are still running.")
    ] = False,
) -> None:
    """Write the report as one offline HTML page, PDF and paper figures."""
    from vcpo_bench.errors import UsageError
    from vcpo_bench.records.layout import cells_in

    if figure and (figures or pdf):
        raise UsageError("--figure writes these figures and nothing else: leave out --figures and --pdf")
    if (form or methods) and not (figure or figures):
        raise UsageError("--as, --methods: of printed figures; add --figure NAME or --figures VENUE")
    if venue and not figure:
        raise UsageError("--venue: of --figure; add --figure NAME, or write --figures VENUE for all figures")
    sources = folders or [DEFAULT_OUT]
    for source in sources:
        cells_in(source)
    place = sources[0] if html is None else html.parent
    with _quick():
        printed = _printed(place, figures or venue or "iclr", figure, methods, form) if figure or figures else None
        if printed and figure:
            _print(sources, *printed, partial)
            return

        from vcpo_bench.reports.writers import html as page
        from vcpo_bench.reports.writers import pdf as typeset

        check_file("--html", page.page_path(sources, html))
        check_file("--pdf", pdf)
        if printed:
            _print(sources, *printed, partial)
        say(page.write_page(sources, html, partial))
        if pdf:
            say(typeset.write_pdf(sources, pdf, partial))


@contextmanager
def _quick() -> Iterator[None]:
    """Little is garbage, texts in Arrow's columns are slower to analyze, and a fork of this process is safe."""
    import pandas as pd

    from vcpo_bench.reports.writers import second_process

    before = gc.get_threshold(), second_process.welcome
    gc.set_threshold(50_000)
    second_process.welcome = True
    try:
        with pd.option_context("mode.string_storage", "python"):
            yield
    finally:
        gc.set_threshold(*before[0])
        second_process.welcome = before[1]


def _printed(place: Path, venue: str, *lists: str) -> tuple[Path, Printing]:
    """The folder of the figures for print, and what is printed; an unknown venue is refused before that is made."""
    from vcpo_bench.errors import UsageError
    from vcpo_bench.naming.grammar import split_list
    from vcpo_bench.reports.writers import paper

    choice = paper.Printing(venue, *(split_list(one) if one else [] for one in lists))
    folder = place / choice.venue
    paper.check(choice)
    check_folder("--figures", folder)
    if folder.is_symlink():
        raise UsageError(f"--figures: {folder} is a link, which is not followed; move it away")
    return folder, choice


def _print(sources: list[Path], folder: Path, choice: Printing, partial: bool) -> None:
    from vcpo_bench.reports.writers import paper

    for path in paper.write_figures(sources, folder, choice, partial):
        say(path)


VERB = Verb(
    report,
    order=3,
    examples=(
        "vcpo-bench report results/default",
        "vcpo-bench report results/default --pdf report.pdf --figures icml",
        "vcpo-bench report results/default --figure ess-vs-collapse --as png,pdf",
    ),
)
