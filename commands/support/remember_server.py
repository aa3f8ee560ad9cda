"""`--url`: the address of a server, which is no part of a cell."""

from __future__ import annotations

import os

import typer


def remember_server(ctx: typer.Context) -> None:
    """Put the address that was typed where workers read it; one from the environment is there already.

    Args:
        ctx: The call.
    """
    source = ctx.get_parameter_source("url")
    if ctx.params["url"] and source is not None and source.name != "ENVIRONMENT":
        os.environ["VCPO_BENCH_VLLM_URL"] = ctx.params["url"]
