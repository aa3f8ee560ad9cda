"""Local launcher: spawned worker processes with one thread each; a crash of one does not affect the others."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.running.observers import GridObserver
from vcpo_bench.bench.training.step_observer import ObserverFactory

MAX_DEATHS = 3
"""A cell whose worker dies this many times is reported as failed."""


@dataclass(frozen=True, slots=True)
class CellJob:
    """What a worker needs to run a cell.

    Attributes:
        cell: The cell.
        cells_folder: `cells` of the results folder.
        keep_every: Keep a numbered checkpoint every so many updates; 0: none.
        plugins: Plug-in files to load first.
        make_observer: Makes the observer of a cell that may be stopped early.
    """

    cell: PlannedCell
    cells_folder: Path
    keep_every: int
    plugins: tuple[Path, ...] = ()
    make_observer: ObserverFactory | None = None


@dataclass(slots=True)
class _Worker:
    position: int
    process: BaseProcess
    pipe: Connection
    job: CellJob | None = None


@dataclass(slots=True)
class _Progress:
    pending: deque[CellJob]
    deaths: dict[str, int] = field(default_factory=dict)
    failed: int = 0


def run_jobs(jobs: Sequence[CellJob], workers: int, observer: GridObserver) -> int:
    """Run all jobs, in order, on `workers` processes.

    A worker that dies is replaced, and its cell resumes from its checkpoint.

    Args:
        jobs: The cells to run.
        workers: Number of processes.
        observer: Receives the events of all cells.

    Returns:
        Number of cells that failed (status `error`, or `MAX_DEATHS` crashes).
    """
    progress = _Progress(deque(jobs))
    crew = [_spawn(position) for position in range(min(workers, len(jobs)))]
    try:
        for worker in crew:
            _assign(worker, progress)
        while any(worker.job for worker in crew):
            ready = set(wait([w.pipe for w in crew if w.job] + [w.process.sentinel for w in crew if w.job]))
            for position, worker in enumerate(crew):
                if not worker.job or not {worker.pipe, worker.process.sentinel} & ready:
                    continue
                if not _receive(worker, progress, observer):
                    crew[position] = _replace(worker, progress, observer)
    finally:
        for worker in crew:
            worker.process.kill()
            worker.process.join()
    return progress.failed


def placed(device: str, position: int, count: int) -> str:
    """Device of a worker: `cuda` stands for all GPUs of the machine, which are assigned to workers round-robin.

    Args:
        device: Device of the cell.
        position: Index of the worker.
        count: Number of GPUs.
    """
    return f"cuda:{position % count}" if device == "cuda" and count > 1 else device


def _spawn(position: int) -> _Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, position), daemon=True)
    # Ctrl-C reaches the whole process group, but only the parent may react: workers start with SIGINT blocked.
    # The resource tracker unblocks SIGINT when it starts, so it must be running before.
    resource_tracker.ensure_running()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    theirs.close()
    return _Worker(position, process, ours)


def _assign(worker: _Worker, progress: _Progress) -> None:
    worker.job = progress.pending.popleft() if progress.pending else None
    if worker.job:
        with suppress(OSError):  # it has just died: its sentinel is ready, and another worker gets the job
            worker.pipe.send(worker.job)


def _receive(worker: _Worker, progress: _Progress, observer: GridObserver) -> bool:
    """Forward one event; False if the worker is dead and all its events have been read."""
    try:
        event, *details = worker.pipe.recv()
    except (EOFError, OSError):
        worker.process.join()
        return False
    getattr(observer, event)(*details)
    if event == "ended":
        failed = details[1] == "error"
        progress.failed += failed
        if failed and progress.pending and worker.job and worker.job.cell.device.startswith("cuda"):
            _renew(worker)
        _assign(worker, progress)
    return True


def _renew(worker: _Worker) -> None:
    """Start a worker's process anew: after a GPU error, all later CUDA calls of a process may fail too."""
    worker.process.kill()
    worker.process.join()
    worker.pipe.close()
    fresh = _spawn(worker.position)
    worker.process, worker.pipe = fresh.process, fresh.pipe


def _replace(dead: _Worker, progress: _Progress, observer: GridObserver) -> _Worker:
    job = dead.job
    assert job is not None
    key = job.cell.key
    progress.deaths[key] = deaths = progress.deaths.get(key, 0) + 1
    if deaths < MAX_DEATHS:
        observer.message(
            f"{job.cell.config.label}: its worker died ({_cause(dead.process)}); resuming from its checkpoint"
        )
        progress.pending.appendleft(job)
    else:
        progress.failed += 1
        observer.ended(key, "error", 0.0, f"its worker died {deaths} times ({_cause(dead.process)})")
    fresh = _spawn(dead.position)
    _assign(fresh, progress)
    return fresh


def _cause(process: BaseProcess) -> str:
    code = process.exitcode
    return signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"


def _work(pipe: Connection, position: int) -> None:
    """Body of a worker: run one job after another until the parent exits."""
    threading.Thread(target=_follow_parent, daemon=True).start()

    import torch

    from vcpo_bench.bench.devices import keep_freed_memory, release_memory
    from vcpo_bench.bench.running.run_cell import run_cell
    from vcpo_bench.methods import load_plugin

    keep_freed_memory()
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    send: Any = pipe.send
    loaded: set[Path] = set()
    while True:
        job: CellJob = pipe.recv()
        for plugin in set(job.plugins) - loaded:
            load_plugin(plugin)
            loaded.add(plugin)
        cell = replace(job.cell, device=placed(job.cell.device, position, torch.cuda.device_count()))
        run_cell(cell, job.cells_folder, job.keep_every, lambda *event: send(event), job.make_observer)
        release_memory(cell.device)


def _follow_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent:
        parent.join()
    os._exit(1)
