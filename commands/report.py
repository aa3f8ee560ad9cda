"""`vcpo-bench report`: the results as a page, a PDF and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.options import DEFAULT_OUT, Folders
from vcpo_bench.commands.support.outputs import check_file, check_folder
from vcpo_bench.commands.support.say import say
from vcpo_bench.commands.support.verb import Verb


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
            help="Also write figures and tables for print: icml, neurips, acl, nature, beamer, or sizes such as "
            "4x1.5in@9pt (width, panel height, font). They go next to the page.",
        ),
    ] = "",
    only: Annotated[
        str, typer.Option(metavar="LIST", help="Names of the printed figures and tables wanted, instead of all.")
    ] = "",
    methods: Annotated[
        str, typer.Option(metavar="LIST", help="Methods in the printed figures and tables, instead of all.")
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
    from vcpo_bench.errors import UsageError
    from vcpo_bench.naming.grammar import split_list
    from vcpo_bench.reports.writers import html as page
    from vcpo_bench.reports.writers import paper
    from vcpo_bench.reports.writers import pdf as typeset
    from vcpo_bench.reports.writers import watch as watching

    if figures:
        paper.sheets(figures)  # refuses an unknown venue before anything is written
    elif only or methods:
        raise UsageError("--only, --methods: choose among printed figures; add --figures VENUE")
    sources = folders or [DEFAULT_OUT]
    target = page.page_path(sources, html)
    check_file("--html", target)
    check_file("--pdf", pdf)
    printed = target.parent / figures if figures else None
    check_folder("--figures", printed)
    if printed and printed.is_symlink():
        raise UsageError(f"--figures: {printed} is a link, which is not followed; move it away")

    names, chosen = split_list(only) if only else [], split_list(methods) if methods else []
    if watch:
        watching.watch(sources, html, on_write=say)
    if printed:  # before the page: names that are not there are refused before anything is written
        for path in paper.write_figures(sources, printed, figures, names, chosen):
            say(path)
    if not watch and (html or not only):
        say(page.write_page(sources, html, partial))
    if pdf:
        say(typeset.write_pdf(sources, pdf, partial))


VERB = Verb(
    report,
    order=3,
    examples=(
        "vcpo-bench report results/default",
        "vcpo-bench report results/default --pdf report.pdf --figures icml",
        "vcpo-bench report results/default --figures beamer --only score-lag",
    ),
)
