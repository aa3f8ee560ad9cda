"""`vcpo-bench report`: the results as a page, a PDF and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.options import DEFAULT_OUT, Folders
from vcpo_bench.commands.support.outputs import check_file, check_folder
from vcpo_bench.commands.support.say import say
from vcpo_bench.commands.support.verb import Group, Verb


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
            help="Also write figures and tables sized for a paper: icml, neurips or acl. They go next to the page.",
        ),
    ] = "",
    partial: Annotated[
        bool, typer.Option("--partial", metavar="", help="Include cells that are still running.")
    ] = False,
    watch: Annotated[
        bool,
        typer.Option("--watch", metavar="", help="Rewrite the page as cells advance, until no cell is running."),
    ] = False,
) -> None:
    """Write the report as one offline HTML page, PDF and paper figures."""
    from vcpo_bench.reports.writers import html as page
    from vcpo_bench.reports.writers import paper
    from vcpo_bench.reports.writers import pdf as typeset
    from vcpo_bench.reports.writers import watch as watching

    if figures:
        paper.sheets(figures)  # refuses an unknown venue before anything is written
    sources = folders or [DEFAULT_OUT]
    target = html or sources[0] / "report.html"
    check_file("--html", target)
    check_file("--pdf", pdf)
    check_folder("--figures", target.parent / figures if figures else None)
    if watch:
        watching.watch(sources, target, on_write=say)
    else:
        say(page.write_page(sources, target, partial))
    if pdf:
        say(typeset.write_pdf(sources, pdf, partial))
    if figures:
        for path in paper.write_figures(sources, target.parent / figures, figures):
            say(path)


VERB = Verb(
    report,
    Group.READ,
    2,
    examples=(
        "vcpo-bench report results/default",
        "vcpo-bench report results/default --pdf report.pdf --figures icml",
    ),
)
