"""The body of a worker process, which runs one cell after another until its parent ends."""

from __future__ import annotations

import multiprocessing
import os
import threading
import traceback
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

from vcpo_bench.bench.running.cell_job import CellJob
from vcpo_bench.errors import DiskFullError


def worker_device(device: str, position: int, count: int) -> str:
    """Device of a worker: `cuda` stands for all GPUs of the machine, which are assigned to workers round-robin."""
    return f"cuda:{position % count}" if device == "cuda" and count > 1 else device


def work(pipe: Connection, position: int) -> None:
    """Run the jobs that arrive through the pipe, and send what happens.

    The events are those of `GridObserver`, and three more: `waiting` for the claim on a cell, `disk_full` with its
    text, which stops the grid, and `crashed` with a traceback, after which this process ends.
    """
    threading.Thread(target=_follow_parent, daemon=True).start()
    send = _Sender(pipe)
    try:
        _run_jobs(pipe, position, send)
    except DiskFullError as problem:
        send("disk_full", str(problem))
    except Exception:  # the cell could not record this in its folder, so the parent does
        send("crashed", traceback.format_exc())
    os._exit(1)


class _Sender:
    """Sends events; a parent that is gone ends this process, before anything counts that as the error of a cell."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def __call__(self, *event: object) -> None:
        try:
            self._pipe.send(event)
        except OSError:
            os._exit(1)


def _run_jobs(pipe: Connection, position: int, send: _Sender) -> None:
    import torch

    from vcpo_bench.bench.devices import keep_freed_memory, release_memory
    from vcpo_bench.bench.running.cell.run_stack import run_stack
    from vcpo_bench.methods import load_plugin

    keep_freed_memory()
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    loaded: set[Path] = set()
    while True:
        try:
            job: CellJob = pipe.recv()
        except (EOFError, OSError):
            os._exit(1)  # the parent is gone
        for plugin in set(job.plugins) - loaded:
            load_plugin(plugin)
            loaded.add(plugin)
        device = worker_device(job.cell.device, position, torch.cuda.device_count())
        cells = [replace(cell, device=device) for cell in job.cells]
        send("waiting")  # until the cells are claimed
        run_stack(cells, job.cells_folder, job.keep_every, send, job.make_observer)
        release_memory(device)


def _follow_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent:
        parent.join()
    os._exit(1)
