"""`vcpo-bench report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.paths import DEFAULT_OUT
from vcpo_bench.commands.support.verb import Group, Verb


def report(
    folders: Annotated[list[Path] | None, typer.Argument(help="Results folders; several are pooled.")] = None,
    html: Annotated[Path | None, typer.Option(help="Page to write; default: report.html in the folder.")] = None,
    pdf: Annotated[Path | None, typer.Option(help="Also typeset a PDF to this file.")] = None,
    figures: Annotated[str, typer.Option(help="Also write paper figures: icml, neurips or acl.")] = "",
    partial: Annotated[bool, typer.Option(help="Also show cells that are still running.")] = False,
    watch: Annotated[bool, typer.Option(help="Write the page again until no cell is running.")] = False,
) -> None:
    """Write the results as one offline HTML page, as a PDF, and as figures for a paper."""
    from vcpo_bench.reports.writers import html as page
    from vcpo_bench.reports.writers import paper
    from vcpo_bench.reports.writers import pdf as typeset
    from vcpo_bench.reports.writers import watch as watching

    sources = folders or [DEFAULT_OUT]
    target = html or sources[0] / "report.html"
    if watch:
        watching.watch(sources, target, on_write=typer.echo)
    else:
        typer.echo(page.write_page(sources, target, partial))
    if pdf:
        typer.echo(typeset.write_pdf(sources, pdf, partial))
    if figures:
        for path in paper.write_figures(sources, target.parent / figures, figures):
            typer.echo(path)


VERB = Verb(report, Group.READ, 7, examples=())
