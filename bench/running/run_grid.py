"""Running a grid: only what is missing, nothing finished lost, one writer per folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from vcpo_bench.bench.cells.cell_store import CellStore
from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.cells.results_folder import ResultsFolder
from vcpo_bench.bench.devices import checked_device
from vcpo_bench.bench.running.observers import GridObserver
from vcpo_bench.bench.running.pool import CellJob, run_jobs
from vcpo_bench.bench.samplers.catalog import SAMPLERS
from vcpo_bench.bench.training.step_observer import ObserverFactory
from vcpo_bench.errors import DamagedResultError, UsageError


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a grid is run; none of this changes a number.

    Attributes:
        out: Results folder.
        jobs: Worker processes.
        wait: Queue behind another run on the folder instead of refusing.
        keep_every: Keep a numbered checkpoint every so many updates; 0 keeps none.
        plugins: Plug-in files, loaded by every worker.
        make_observer: Makes the observer of a cell that something may stop.
    """

    out: Path
    jobs: int
    wait: bool = False
    keep_every: int = 0
    plugins: tuple[Path, ...] = ()
    make_observer: ObserverFactory | None = None


def worker_count(asked: int, device: str = "cpu", sampler: str = "torch") -> int:
    """Worker processes for `--jobs`: 0 means one per core this process may use, or what the sampler says of the GPUs.

    Args:
        asked: The number asked for.
        device: `cpu`, `cuda` or `cuda:N`.
        sampler: Sampler expression.

    Raises:
        UsageError: The number is negative, or there is no such device or sampler.
    """
    if asked < 0:
        raise UsageError(f"--jobs {asked}: give a number of worker processes, or 0 for one per core or GPU")
    checked_device(device)
    if device != "cpu":
        gpus = torch.cuda.device_count() if device == "cuda" else 1
        return asked or SAMPLERS.parse(sampler).workers(gpus)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return asked or cores or 1


def run_grid(cells: Sequence[PlannedCell], options: RunOptions, observer: GridObserver) -> int:
    """Run the cells of a grid that have not ended yet.

    Returns:
        How many failed.

    Raises:
        UsageError: The folder cannot be used, or another process is writing it.
    """
    folder = ResultsFolder(options.out)
    with folder.locked(options.wait):
        folder.update_grid({cell.key: {"control": cell.control} for cell in cells})
        missing = [cell for cell in cells if _missing(folder, cell, observer)]
        for cell in set(cells) - set(missing):
            CellStore(folder.cells, cell.key).clear()  # what a kill between the last two steps of finishing left
        observer.begin([(cell.key, cell.config.label) for cell in missing], len(cells) - len(missing))
        failed = 0
        for wave in waves(missing):
            jobs = [
                CellJob(cell, folder.cells, options.keep_every, options.plugins, options.make_observer) for cell in wave
            ]
            failed += run_jobs(jobs, options.jobs, observer)
        return failed


def waves(cells: Sequence[PlannedCell]) -> list[list[PlannedCell]]:
    """Cells in an order in which whoever borrows step scales comes after the cell it borrows from."""
    found: list[list[PlannedCell]] = []
    left = list(cells)
    while left:
        unfinished = {cell.key for cell in left}
        wave = [cell for cell in left if cell.config.series not in unfinished]
        found.append(wave)
        left = [cell for cell in left if cell not in wave]
    return found


def _missing(folder: ResultsFolder, cell: PlannedCell, observer: GridObserver) -> bool:
    """Whether the cell must run: not ended, failed, or damaged (then it is set aside, and said)."""
    try:
        return folder.status(cell.key) in (None, "error")
    except DamagedResultError as problem:
        aside = folder.set_aside(cell.key)
        observer.message(f"{problem}; set aside as {aside}, and the cell runs again")
        return True
