"""Run a grid: only cells that have not ended, and one process at a time that writes to a results folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec

from vcpo_bench.bench.cells.cell_store import CellStore
from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.cells.results_folder import ResultsFolder
from vcpo_bench.bench.devices import checked_device
from vcpo_bench.bench.policies.hf.packages import hf_packages
from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.pool.memory import available_cores
from vcpo_bench.bench.running.schedulers.catalog import Launcher
from vcpo_bench.bench.running.schedulers.local import Local
from vcpo_bench.bench.running.schedulers.scheduled import ScheduledLauncher
from vcpo_bench.bench.samplers.catalog import Sampler
from vcpo_bench.bench.samplers.torch_sampler import TorchSampler
from vcpo_bench.errors import NO_TORCH, DamagedResultError, UsageError
from vcpo_bench.lazy_torch import torch
from vcpo_bench.progress import GridObserver

TORCH = TorchSampler()

LATE_SECONDS = 0.2
"""Seconds after which a cell that seems damaged is read again."""


def worker_count(asked: int, device: str = "cpu", sampler: Sampler = TORCH) -> int:
    """Number of worker processes for `--jobs`.

    Args:
        asked: The number asked for; 0: one per CPU core available to this process, or as the sampler uses GPUs.
        device: `cpu`, `cuda` or `cuda:N`.
        sampler: What draws the responses.

    Raises:
        UsageError: The number is negative, or there is no such device.
    """
    if asked < 0:
        raise UsageError(f"--jobs {asked}: give a number of worker processes, or 0 for one per core or GPU")
    if device != "cpu":
        checked_device(device)
        return asked or sampler.workers(torch.cuda.device_count() if device == "cuda" else 1)
    return asked or available_cores()


def run_grid(
    cells: Sequence[PlannedCell], options: RunOptions, observer: GridObserver, launcher: Launcher | None = None
) -> int:
    """Run the cells of a grid that have not ended yet.

    Args:
        cells: Cells of the grid.
        options: How to run them.
        observer: Receives the events of the grid.
        launcher: Where to run them; None: on this machine.

    Returns:
        Number of cells that failed, or whose jobs were canceled.

    Raises:
        UsageError: A package is missing, the folder cannot be used or holds cells of other rules, or another process
            is writing to it.
        DiskFullError: There is no space left.
    """
    check_gpus(cells, launcher or Local())
    check_packages(cells)
    with entered(cells, options, observer.message) as (missing, how):
        observer.begin([(cell.key, cell.config.label) for cell in missing], len(cells) - len(missing))
        return (launcher or Local()).run(missing, how, observer)


def detach_grid(
    cells: Sequence[PlannedCell], options: RunOptions, say: Callable[[str], object], launcher: Launcher
) -> str:
    """Have the missing cells of a grid run without this process; returns one line that says where they are.

    Raises:
        UsageError: As `run_grid`, or the launcher cannot do that.
        DiskFullError: There is no space left.
    """
    if not isinstance(launcher, ScheduledLauncher):
        raise UsageError(
            f"--detach: workers of --launcher {launcher.name} end with this command; start it with nohup ... & "
            "instead, or in tmux"
        )
    check_gpus(cells, launcher)
    check_packages(cells)
    with entered(cells, options, say) as (missing, how):
        return launcher.detach(missing, how)


@contextmanager
def entered(
    cells: Sequence[PlannedCell], options: RunOptions, say: Callable[[str], object]
) -> Iterator[tuple[list[PlannedCell], RunOptions]]:
    """Enter the grid into its folder, and hold the folder while the block runs.

    Yields:
        The missing cells, and how to run them.
    """
    folder = ResultsFolder(options.out)
    with folder.locked(options.wait, say):
        folder.check_rules()
        folder.update_grid({cell.key: {"control": cell.control} for cell in cells})
        missing = [cell for cell in cells if _missing(folder, cell, say)]
        for cell in set(cells) - set(missing):
            CellStore(folder.cells, cell.key).discard()  # leftovers of a kill while the cell was finishing
        yield missing, replace(options, check=folder.check)


def check_gpus(cells: Sequence[PlannedCell], launcher: Launcher) -> None:
    """Refuse a grid whose cells take more GPUs than there are in the place where one runs.

    Raises:
        UsageError: They do.
    """
    for cell in cells if any(cell.config.device == "cuda" for cell in cells) else ():
        ranks, trainer = cell.config.parts.trainer.ranks, cell.config.trainer
        if cell.config.parts.trainer.elsewhere:
            continue
        given = getattr(launcher, "gpus", 1)
        if not launcher.here and given < ranks:
            more = f"write {launcher.name}(gpus={ranks})"
            raise UsageError(
                f"--launcher {launcher.text()}: gives a cell {given:g} GPU, {trainer} takes {ranks}; {more}"
            )
        there = torch.cuda.device_count() if cell.device in ("", "cuda") else 1
        if launcher.here and there < ranks:
            device = cell.device or "cuda"
            raise UsageError(f"--trainer {trainer}: a cell takes {ranks} GPUs, and --device {device} has {there}")


def check_packages(cells: Sequence[PlannedCell]) -> None:
    """Refuse a grid before its first cell where the packages it needs are not there.

    Raises:
        UsageError: One is missing.
    """
    if find_spec("torch") is None:
        raise UsageError(NO_TORCH)
    for sampler in {cell.config.parts.sampler for cell in cells}:
        sampler.check_installed()
    for trainer in {cell.config.parts.trainer for cell in cells}:
        trainer.check_installed()
    if any(cell.config.model for cell in cells):
        with hf_packages():
            import_module("vcpo_bench.bench.policies.hf.loading")
            if any(cell.config.lora for cell in cells):
                import_module("peft")


def _missing(folder: ResultsFolder, cell: PlannedCell, say: Callable[[str], object]) -> bool:
    """Whether the cell must run: not ended, failed, or damaged (then it is moved aside, with a message)."""
    try:
        return _status(folder, cell.key) in (None, "error")
    except DamagedResultError as problem:
        aside = folder.set_aside(cell.key)
        say(f"{problem}; moved to {aside}; the cell runs again")
        return True


def _status(folder: ResultsFolder, key: str) -> str | None:
    """Status of a cell. One that looks damaged is read twice, since a network file system may show a file late."""
    try:
        return folder.status(key)
    except DamagedResultError:
        time.sleep(LATE_SECONDS)
        return folder.status(key)
