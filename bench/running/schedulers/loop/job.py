"""A job: what a scheduler starts in one place, and what it does there. It reads its cells from the results folder."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from vcpo_bench.bench.cells.model_source import recorded_model
from vcpo_bench.bench.running.schedulers.loop.launch_file import LaunchFile
from vcpo_bench.bench.training.step_observer import ObserverFactory
from vcpo_bench.files.claims import ClaimHeldError


@dataclass(frozen=True, slots=True)
class Job:
    """Cells that run one after another.

    Attributes:
        out: The results folder: an absolute path, the same where the job runs.
        keys: Keys of the cells, in order.
        device: `cpu` or `cuda`.
        make_observer: Makes the observer of a cell that may be stopped early.
        model: Folder of the language model, where it is not that of the results folder; empty: it is.
    """

    out: Path
    keys: tuple[str, ...]
    device: str = "cpu"
    make_observer: ObserverFactory | None = None
    model: str = ""


def run_job(job: Job, name: str) -> int:
    """Run the cells of a job in this process, and print what happens.

    A cell that another worker has is left to it, and so are the cells that use its step scales.

    Args:
        job: The job.
        name: What the scheduler calls it: the same when it starts the job again.

    Returns:
        Number of cells that failed (status `error`).

    Raises:
        UsageError: The results folder does not say how to run a cell, or the model is not the one it started from.
        DiskFullError: There is no space left; the cell keeps its latest checkpoint.
    """
    import torch

    from vcpo_bench.bench.devices import keep_freed_memory, release_memory
    from vcpo_bench.bench.running.cell.run_cell import run_cell
    from vcpo_bench.methods import load_plugin

    keep_freed_memory()
    torch.set_num_threads(_threads())
    failed, skipped = 0, set()
    for cell_job in LaunchFile(job.out).cell_jobs(job.keys, job.make_observer):
        cell = cell_job.cell
        if job.model:
            cell = replace(cell, start=recorded_model(cell.key, cell.config.model, job.model))
        if cell.config.series in skipped:
            skipped.add(cell.key)
            continue
        for plugin in cell_job.plugins:
            load_plugin(plugin)
        try:
            status = run_cell(cell, cell_job.cells_folder, cell_job.keep_every, _print, cell_job.make_observer, name)
        except ClaimHeldError as held:
            print(f"{cell.config.label}: {held} has it", flush=True)
            skipped.add(cell.key)
        else:
            failed += status == "error"
        release_memory(cell.device)
    return failed


def _threads() -> int:
    """Threads of torch; `OMP_NUM_THREADS` may be a list, of which the first entry counts here."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(first) if first.isdecimal() and int(first) else 1


def _print(event: str, *details: object) -> None:
    if event != "progress":
        print(event, *details, flush=True)
