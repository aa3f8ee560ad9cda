"""Train a cell in processes of another trainer: start them, follow them, and take over what they leave."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

from vcpo_bench.bench.cells.cell_store import CHECKPOINT, CellStore, numbered
from vcpo_bench.bench.cells.config import plugins_of
from vcpo_bench.bench.cells.error_text import without_paths
from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.python_processes import LEFT_TO_THE_PARENT, SAFE_PATH
from vcpo_bench.bench.running.cell.ending import EndedRun, describe_checkpoint
from vcpo_bench.bench.running.cell_job import MAX_DEATHS
from vcpo_bench.bench.trainers.catalog import OutsideTrainer
from vcpo_bench.bench.trainers.job import FOLLOWS, LOG, TABLES, Progress, TrainerJob
from vcpo_bench.bench.training.build import build_recorder
from vcpo_bench.errors import DamagedResultError, UsageError
from vcpo_bench.files.checksums import verify_sealed, write_sealed
from vcpo_bench.naming.plugins import plugin_files
from vcpo_bench.records import STATE_FILE

POLL_SECONDS = 0.2
LOG_LINES = 15
"""Lines of the log of a run that failed which its error shows."""


def planned_job(cell: PlannedCell, keep_every: int = 0, resume: str = "") -> TrainerJob:
    """What the processes of a cell are told.

    Args:
        cell: The cell.
        keep_every: Keep a checkpoint every so many updates; 0: none.
        resume: Checkpoint to go on from; empty: start anew.
    """
    plugins = tuple(map(str, plugin_files(cell.config.plugins)))
    return TrainerJob(
        key=cell.key,
        config=cell.config.changed(),
        updates=cell.updates,
        model=str(cell.start),
        plugins=plugins,
        keep_every=keep_every,
        resume=resume,
    )


def train_outside(
    cell: PlannedCell, trainer: OutsideTrainer, store: CellStore, keep_every: int, emit: Callable[..., None]
) -> EndedRun:
    """Train a cell to its end, from its newest undamaged checkpoint if there is one.

    Processes that die are started again from there, as workers are. `keep_every` is in updates, 0 keeps no checkpoint.

    Raises:
        UsageError: Something is not there, or cannot be carried out.
        RuntimeError: The processes failed; the message ends their log.
    """
    if plugins_of(cell.config) != cell.config.plugins:
        raise UsageError("a plug-in of this cell was edited while the grid was running; run it again")
    for tries_left in reversed(range(MAX_DEATHS)):
        folder = store.scratch()
        resume = _newest(cell, store, emit)
        job = planned_job(cell, keep_every, str(resume or "")).write(folder)
        with _started(trainer.command(job), job.with_name(LOG), _gpus(cell, trainer.ranks)) as process:
            progress = _follow(process, folder, cell, store, keep_every, emit)
        if progress.status:
            recorder = build_recorder(cell.config)
            recorder.read(folder / TABLES)
            return EndedRun(progress.status, progress.step, progress.stopped, recorder)
        if progress.usage:
            raise UsageError(progress.error)
        if not tries_left or (progress.error and trainer.ranks == 1):
            raise RuntimeError(_failure(folder, progress, process.returncode))
        emit("message", f"{cell.config.label}: its processes died (exit code {process.returncode}); starting again")
    raise AssertionError("the last try returns or raises")


def _newest(cell: PlannedCell, store: CellStore, emit: Callable[..., None]) -> Path | None:
    """The newest checkpoint that is whole; damaged ones are moved aside."""
    for checkpoint in store.checkpoints():
        try:
            verify_sealed(checkpoint / STATE_FILE)
        except DamagedResultError as problem:
            aside = store.set_checkpoint_aside(checkpoint).name
            emit("message", f"{cell.config.label}: checkpoint moved to {aside} ({without_paths(str(problem))})")
        else:
            return checkpoint.resolve()
    return None


@contextmanager
def _started(command: list[str], said: Path, gpus: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """The processes of a cell, in a group of their own; none is left when the block ends.

    They import nothing from the working directory, which may be a stranger's.
    """
    environment = {**os.environ, FOLLOWS: "1", SAFE_PATH: "1", **gpus}
    with said.open("wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,  # its end tells them that this process has gone
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
            preexec_fn=_take_signals,
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stdin is not None
        process.stdin.close()


def _take_signals() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, LEFT_TO_THE_PARENT)


def _gpus(cell: PlannedCell, ranks: int) -> dict[str, str]:
    """Which GPUs a cell sees: worker i of a machine has the i-th group of as many as the trainer takes."""
    kind, _, index = (cell.device or cell.config.device).partition(":")
    if kind == "cpu":
        return {"CUDA_VISIBLE_DEVICES": ""}
    there = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    visible = there if there != [""] else [str(gpu) for gpu in range(torch.cuda.device_count())]
    first = int(index or 0) * ranks
    return {"CUDA_VISIBLE_DEVICES": ",".join(visible[first : first + ranks])}


def _follow(
    process: subprocess.Popen[bytes],
    folder: Path,
    cell: PlannedCell,
    store: CellStore,
    keep_every: int,
    emit: Callable[..., None],
) -> Progress:
    """Wait for the end of the processes, and publish what they leave meanwhile; what they said last."""
    told = Progress()
    while True:
        ended = process.poll() is not None
        now = Progress.read(folder)
        for step, written in numbered(folder, CHECKPOINT).items():
            if step <= now.checkpoint:
                _publish(written, step, cell, store, keep_every)
        if now.step > told.step:
            store.claim.note = {"step": now.step, "reward": now.reward, "ess": now.ess}
            emit("progress", cell.key, now.step, now.reward, now.ess)
        told = now
        if ended:
            return now
        store.check()
        time.sleep(POLL_SECONDS)


def _publish(written: Path, step: int, cell: PlannedCell, store: CellStore, keep_every: int) -> None:
    """Make the cell's newest checkpoint of a folder that the trainer has written."""
    recorder = build_recorder(cell.config)
    recorder.read(written)
    describe_checkpoint(cell, step, recorder, written)
    write_sealed(written / STATE_FILE, {"key": cell.key, "step": step})
    if keep_every and step % keep_every == 0:
        store.keep(step, lambda kept: shutil.copytree(written, kept, dirs_exist_ok=True))  # type: ignore[arg-type]
    with store.checkpoint(step) as draft:
        for path in written.iterdir():
            path.rename(draft / path.name)
    written.rmdir()


def _failure(folder: Path, progress: Progress, code: int) -> str:
    log = (folder / LOG).read_text(errors="replace").strip().splitlines()[-LOG_LINES:]
    said = progress.error or f"the trainer's processes ended with exit code {code}"
    return "\n".join([*log, said])
