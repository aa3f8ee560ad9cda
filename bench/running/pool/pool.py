"""A pool of spawned worker processes with one thread each; a crash of one does not affect the others."""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from vcpo_bench.bench.python_processes import safe_path, shielded
from vcpo_bench.bench.running.cell_job import MAX_DEATHS, CellJob
from vcpo_bench.bench.running.pool.heartbeat import POLL_SECONDS, Heartbeat, RunningClock
from vcpo_bench.bench.running.pool.worker import work
from vcpo_bench.errors import DiskFullError
from vcpo_bench.progress import GridObserver


@dataclass(frozen=True, slots=True)
class WorkerExit:
    """The end of a worker process.

    Attributes:
        exitcode: Its exit code; negative for a signal.
        traceback: What it raised, where it could still say so; else empty.
        silent: Seconds without a heartbeat after which it was killed as hung; 0: it was not killed for that.
    """

    exitcode: int | None
    traceback: str = ""
    silent: float = 0.0

    @property
    def cause(self) -> str:
        """The cause in one phrase."""
        if self.silent:
            return f"no heartbeat for {self.silent:g} s"
        if self.traceback:
            return self.traceback.strip().splitlines()[-1]
        if self.exitcode is not None and self.exitcode < 0:
            return signal.Signals(-self.exitcode).name
        return f"exit code {self.exitcode}"

    @property
    def advice(self) -> str:
        """The likely reason, and what to do; empty where nothing is known."""
        if not self.silent and self.exitcode == -signal.SIGKILL:
            return "; most likely the machine ran out of memory: use fewer --jobs, --prompts or --responses"
        return ""


@dataclass(slots=True)
class _Worker:
    position: int
    process: BaseProcess
    pipe: Connection
    job: CellJob | None = None
    left: set[str] = field(default_factory=set)  # keys of the job's cells that have not ended
    failed: bool = False
    heartbeat: Heartbeat | None = None
    crash: str = ""
    hung: bool = False


@dataclass(slots=True)
class _Progress:
    pending: deque[CellJob]
    clock: RunningClock = field(default_factory=RunningClock)
    deaths: dict[str, int] = field(default_factory=dict)
    failed: int = 0


def run_jobs(jobs: Sequence[CellJob], workers: int, observer: GridObserver) -> int:
    """Run all jobs, in order, on `workers` processes.

    A worker that dies or hangs is replaced, and its cell resumes from its checkpoint.

    Returns:
        Number of cells that failed (status `error`).

    Raises:
        DiskFullError: A worker found the disk full; the grid stops, and every cell keeps its checkpoint.
    """
    progress = _Progress(deque(jobs))
    pool: list[_Worker] = []
    try:
        pool += (_spawn(position) for position in range(min(workers, len(jobs))))
        for worker in pool:
            _assign(worker, progress)
        while any(worker.job for worker in pool):
            busy = [w.pipe for w in pool if w.job] + [w.process.sentinel for w in pool if w.job]
            ready = set(wait(busy, POLL_SECONDS))
            _check_heartbeats(pool, progress, observer)
            for position, worker in enumerate(pool):
                if not worker.job or not {worker.pipe, worker.process.sentinel} & ready:
                    continue
                if not _receive(worker, progress, observer):
                    pool[position] = _replace(worker, progress, observer)
    finally:
        for worker in pool:
            worker.process.kill()
            worker.process.join()
    return progress.failed


def _spawn(position: int) -> _Worker:
    context = multiprocessing.get_context("spawn")
    parent_end, worker_end = context.Pipe()
    process = context.Process(target=work, args=(worker_end, position), daemon=True)
    with safe_path():
        resource_tracker.ensure_running()  # it would unblock the signals when it starts
        with shielded():
            process.start()
    worker_end.close()
    return _Worker(position, process, parent_end)


def _assign(worker: _Worker, progress: _Progress) -> None:
    worker.job = progress.pending.popleft() if progress.pending else None
    worker.left, worker.failed = set(), False
    if worker.job:
        worker.left = {cell.key for cell in worker.job.cells}
        worker.heartbeat = Heartbeat(worker.job.label, bool(worker.job.cell.config.model), progress.clock.now())
        with suppress(OSError):  # it has just died: its sentinel is ready, and another worker gets the job
            worker.pipe.send(worker.job)


def _check_heartbeats(pool: Sequence[_Worker], progress: _Progress, observer: GridObserver) -> None:
    """Name the workers that are silent, and kill those that hang; their sentinels then become ready."""
    now = progress.clock.now()
    for worker in pool:
        if not worker.job or not worker.heartbeat:
            continue
        if text := worker.heartbeat.complaint(now, worker.process.pid):
            observer.message(text)
        if worker.heartbeat.hung(now) and not worker.hung and not worker.pipe.poll():
            worker.hung = True
            worker.process.kill()


def _receive(worker: _Worker, progress: _Progress, observer: GridObserver) -> bool:
    """Forward one event; False if the worker is dead and all its events have been read."""
    try:
        event, *details = worker.pipe.recv()
    except (EOFError, OSError):
        worker.process.join()
        return False
    if worker.heartbeat and event != "message":  # a message may say that it waits for a lock
        worker.heartbeat.hear(progress.clock.now())
    if event == "disk_full":
        raise DiskFullError(*details)
    if event == "crashed":
        (worker.crash,) = details
    elif event == "waiting" and worker.heartbeat:
        worker.heartbeat.pause()
    else:
        getattr(observer, event)(*details)
    if event == "ended":
        failed = details[1] == "error"
        progress.failed += failed
        worker.failed |= failed
        worker.left.discard(details[0])
        if worker.job and not worker.left:
            if worker.failed and progress.pending and worker.job.cell.device.startswith("cuda"):
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
    """A new worker in place of a dead one, whose cell is tried again or, after `MAX_DEATHS`, recorded as failed.

    The cells of a stack that dies a second time are tried one by one, so that none of them costs the others.
    """
    assert dead.job is not None
    job = replace(dead.job, cells=tuple(cell for cell in dead.job.cells if cell.key in dead.left))
    for key in dead.left:
        progress.deaths[key] = progress.deaths.get(key, 0) + 1
    key, count = job.cell.key, max(progress.deaths[key] for key in dead.left)
    limit = dead.heartbeat.limit if dead.hung and dead.heartbeat else 0.0
    death = WorkerExit(dead.process.exitcode, dead.crash, limit)
    if count < MAX_DEATHS or len(job.cells) > 1:
        observer.message(f"{job.label}: its worker died ({death.cause}); resuming from its checkpoint")
        together = [job.cells] if count == 1 else [(cell,) for cell in job.cells]
        progress.pending.extendleft(replace(job, cells=cells) for cells in reversed(together))
    else:
        from vcpo_bench.bench.running.cell.ending import record_failure  # which imports torch

        reason = f"its worker died {count} times ({death.cause}){death.advice}"
        progress.failed += 1
        record_failure(job.cell, job.cells_folder, reason, death.traceback)
        observer.ended(key, "error", 0.0, reason)
    fresh = _spawn(dead.position)
    _assign(fresh, progress)
    return fresh
