"""`--url`: the address of a server, which is no part of a cell."""

from __future__ import annotations

import os

import typer


def remember_server(ctx: typer.Context, learner: str) -> None:
    """Put the address that was typed where workers read it; one from the environment is there already.

    Args:
        ctx: The call.
        learner: Its learner expression: a learner with a server is what the address belongs to.

    Raises:
        UsageError: There is no such learner.
    """
    from vcpo_bench.bench.learners.catalog import LEARNERS

    variable = LEARNERS.parse(learner).url_variable or "VCPO_BENCH_VLLM_URL"
    source = ctx.get_parameter_source("url")
    if ctx.params["url"] and source is not None and source.name != "ENVIRONMENT":
        os.environ[variable] = ctx.params["url"]
