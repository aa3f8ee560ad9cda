"""`vcpo-bench results serve`: a live page of runs, for a browser on this machine."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.say import say
from vcpo_bench.commands.support.verb import Verb


def serve(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="DIR", help="Results folders, or folders that hold some.", show_default="results"),
    ] = None,
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="Port to listen at; 0: any that is free.")
    ] = 8265,
) -> None:
    """Show runs side by side in a browser, drawn anew while they train.

    Only this machine can open the page. On a server, forward the port: ssh -L 8265:localhost:8265 SERVER. Ctrl-C ends
    it.
    """
    from vcpo_bench.errors import UsageError
    from vcpo_bench.reports.live.pages import Pages
    from vcpo_bench.reports.live.server import make_server

    sources = folders or [Path("results")]
    for folder in folders or ():
        if not folder.is_dir():
            raise UsageError(f"{folder}: there is no such folder; vcpo-bench run --out {folder} makes one")
    try:
        server = make_server(Pages(sources).answer, port)
    except OSError as error:
        raise UsageError(f"--port {port}: {error.strerror}; choose another, or 0 for any that is free") from None
    say(f"http://localhost:{server.server_address[1]}/   (Ctrl-C ends it)")
    with server, suppress(KeyboardInterrupt):
        server.serve_forever()


VERB = Verb(serve, examples=("vcpo-bench results serve results", "vcpo-bench results serve results/a results/b"))
