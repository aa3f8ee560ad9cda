"""`vcpo-bench run-cell`: submitted cells run by hand, on a node where their jobs fail."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.options import Plugins, load_plugins
from vcpo_bench.commands.support.verb import Verb


def run_cell(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Results folder, where vcpo-bench run entered the cells.")],
    key: Annotated[list[str], typer.Option(metavar="KEY", help="Key of a cell; repeat it for several.")],
    model: Annotated[
        str, typer.Option(metavar="DIR", help="Folder of the language model, where it is another than in the plan.")
    ] = "",
    plugin: Plugins = None,
) -> None:
    """Run cells of a results folder in this process.

    A cell that another worker has is left to it. The exit code is 1 if a cell failed. Plug-ins that the folder names
    are loaded only if --plugin names them as well: the folder may be a stranger's.
    """
    from vcpo_bench.analysis.monitoring.stop_on_alarm import StopOnAlarm
    from vcpo_bench.bench.running.run_grid import check_gpus, check_packages
    from vcpo_bench.bench.running.schedulers.local import Local
    from vcpo_bench.bench.running.schedulers.loop.job import Job, run_job
    from vcpo_bench.bench.running.schedulers.loop.launch_file import LaunchFile
    from vcpo_bench.commands.support.kinds.find import load_catalogs
    from vcpo_bench.errors import UsageError

    load_catalogs()  # what plug-in files may define is known from them
    jobs = LaunchFile(out.resolve()).cell_jobs(key, None)
    named = {path for cell in jobs for path in cell.plugins}
    if unknown := named - set(load_plugins(plugin)):
        path = min(unknown)
        raise UsageError(
            f"{out} names the plug-in {path}, which runs with your rights; read it, then add --plugin {path}"
        )
    cells = [job.cell for job in jobs]
    check_packages(cells)
    check_gpus(cells, Local())
    job = os.environ.get("SLURM_JOB_ID") or f"process {os.getpid()} on {socket.gethostname()}"
    if run_job(Job(out.resolve(), tuple(key), make_observer=StopOnAlarm, model=model), job):
        raise typer.Exit(1)


VERB = Verb(
    run_cell,
    examples=("vcpo-bench run-cell --out results/default --key KEY",),
    hidden=True,
)
