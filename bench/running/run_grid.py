"""Run a grid: only missing cells, one writer per results folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import torch

from vcpo_bench.bench.cells.cell_store import CellStore
from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.cells.results_folder import ResultsFolder
from vcpo_bench.bench.devices import checked_device
from vcpo_bench.bench.policies.hf.packages import hf_packages
from vcpo_bench.bench.running.memory import available_cores
from vcpo_bench.bench.running.observers import GridObserver
from vcpo_bench.bench.running.pool import run_jobs
from vcpo_bench.bench.running.stacks import stacks
from vcpo_bench.bench.running.worker import CellJob
from vcpo_bench.bench.samplers.catalog import SAMPLERS
from vcpo_bench.bench.training.step_observer import ObserverFactory
from vcpo_bench.errors import DamagedResultError, UsageError


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a grid is run; no option changes results.

    Attributes:
        out: Results folder.
        jobs: Number of worker processes.
        wait: Wait for another run on the folder to finish instead of raising.
        keep_every: Keep a numbered checkpoint every so many updates; 0: none.
        plugins: Plug-in files, loaded by every worker.
        make_observer: Makes the observer of a cell that may be stopped early.
        stack: Cells trained as one stack; 0: each alone.
    """

    out: Path
    jobs: int
    wait: bool = False
    keep_every: int = 0
    plugins: tuple[Path, ...] = ()
    make_observer: ObserverFactory | None = None
    stack: int = 0


def worker_count(asked: int, device: str = "cpu", sampler: str = "torch") -> int:
    """Number of worker processes for `--jobs`.

    Args:
        asked: The number asked for; 0: one per CPU core available to this process, or as the sampler uses GPUs.
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
    return asked or available_cores()


def run_grid(cells: Sequence[PlannedCell], options: RunOptions, observer: GridObserver) -> int:
    """Run the cells of a grid that have not ended yet.

    Args:
        cells: Cells of the grid.
        options: How to run them.
        observer: Receives the events of the grid.

    Returns:
        Number of cells that failed.

    Raises:
        UsageError: A package is missing, the folder cannot be used or holds cells of other rules, or another process
            is writing to it.
        DiskFullError: There is no space left.
    """
    check_packages(cells)
    folder = ResultsFolder(options.out)
    with folder.locked(options.wait, observer.message):
        folder.check_rules()
        folder.update_grid({cell.key: {"control": cell.control} for cell in cells})
        missing = [cell for cell in cells if _missing(folder, cell, observer)]
        for cell in set(cells) - set(missing):
            CellStore(folder.cells, cell.key).clear()  # leftovers of a kill while the cell was finishing
        observer.begin([(cell.key, cell.config.label) for cell in missing], len(cells) - len(missing))
        failed = 0
        for wave in waves(missing):
            together = stacks(wave, options.stack, observer.message) if options.stack else [(cell,) for cell in wave]
            jobs = [
                CellJob(cells, folder.cells, options.keep_every, options.plugins, options.make_observer)
                for cells in together
            ]
            failed += run_jobs(jobs, options.jobs, observer)
        return failed


def check_packages(cells: Sequence[PlannedCell]) -> None:
    """Refuse a grid before its first cell where the packages it needs are not there.

    Raises:
        UsageError: One is missing.
    """
    for sampler in {cell.config.sampler for cell in cells}:
        SAMPLERS.parse(sampler).check_installed()
    if any(cell.config.model for cell in cells):
        with hf_packages():
            import_module("vcpo_bench.bench.policies.hf.loading")
            if any(cell.config.lora for cell in cells):
                import_module("peft")


def waves(cells: Sequence[PlannedCell]) -> list[list[PlannedCell]]:
    """Groups of cells to run one after another: a cell that uses step scales of another comes in a later group."""
    waiting = {cell.key: cell.config.series for cell in cells}
    found: dict[int, list[PlannedCell]] = {}
    for cell in cells:
        depth, lender = 0, cell.config.series
        while lender in waiting:
            depth, lender = depth + 1, waiting[lender]
        found.setdefault(depth, []).append(cell)
    return [found[depth] for depth in sorted(found)]


def _missing(folder: ResultsFolder, cell: PlannedCell, observer: GridObserver) -> bool:
    """Whether the cell must run: not ended, failed, or damaged (then it is moved aside, with a message)."""
    try:
        return folder.status(cell.key) in (None, "error")
    except DamagedResultError as problem:
        aside = folder.set_aside(cell.key)
        observer.message(f"{problem}; moved to {aside}; the cell runs again")
        return True
