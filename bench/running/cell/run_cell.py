"""Run one cell to completion: resume if there is a checkpoint, train, checkpoint, write results.

Exceptions end the cell with status `error`; they never reach the grid.
"""

from __future__ import annotations

import math
import os
import re
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from vcpo_bench.bench.cells.cell_store import CellStore
from vcpo_bench.bench.cells.config import plugins_of
from vcpo_bench.bench.cells.error_text import without_paths
from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.cells.grid_spec import start_digest
from vcpo_bench.bench.running.cell.ending import EndedRun, finish, finish_failed, save_checkpoint
from vcpo_bench.bench.running.cell.train_outside import train_outside
from vcpo_bench.bench.trainers.catalog import OutsideTrainer
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.step_observer import ObserverFactory
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.errors import DamagedResultError, UsageError
from vcpo_bench.files.claims import ClaimLostError
from vcpo_bench.files.disk_space import full_disks_named, is_disk_full
from vcpo_bench.files.parquet import read_parquet
from vcpo_bench.records import CELL_FILE, STEPS_FILE
from vcpo_bench.records.table_file import seal_beside

CHECKPOINT_SECONDS = float(os.environ.get("VCPO_BENCH_CHECKPOINT_SECONDS", "5"))
"""Seconds between checkpoints, the most that a kill costs; 0: one after every update, whatever that costs. Results do
not depend on it."""
CHECKPOINT_SHARE = 0.05
"""Largest share of the time that checkpoints may take."""
PROGRESS_SECONDS = 0.3

Emit = Callable[..., None]
"""Sends one event of `GridObserver`: its name, then its arguments."""


def run_cell(
    cell: PlannedCell,
    cells_folder: Path,
    keep_every: int,
    emit: Emit,
    make_observer: ObserverFactory | None = None,
    job: str = "",
) -> str:
    """Train a cell to its end, from its latest checkpoint if there is one.

    A worker that loses its claim, because it was taken for dead, discards its work and waits for the other's result.

    Args:
        cell: The cell.
        cells_folder: `cells` of the results folder.
        keep_every: Keep a numbered checkpoint every so many updates; 0: none.
        emit: Receives `started`, `progress`, `warned` and `ended`.
        make_observer: Makes the observer of a cell that may be stopped early.
        job: Name of the scheduler's job that runs it; empty: a worker of this machine, which waits for others.

    Returns:
        The status the cell ended with.

    Raises:
        ClaimHeldError: Another worker has the cell, and this is a scheduler's job, whose place is paid for.
        DiskFullError: There is no space left; the cell keeps its latest checkpoint.
    """
    with full_disks_named(cells_folder):
        while True:
            try:
                return _run_cell(cell, CellStore(cells_folder, cell.key), keep_every, emit, make_observer, job)
            except ClaimLostError as lost:
                emit("message", f"{cell.config.label}: {without_paths(str(lost))}; its work counts")


def _run_cell(
    cell: PlannedCell, store: CellStore, keep_every: int, emit: Emit, make_observer: ObserverFactory | None, job: str
) -> str:
    began = time.perf_counter()
    with store.open(lambda text: emit("message", f"{cell.config.label}: {without_paths(text)}"), not job, job):
        if (known := store.ended()) is not None:
            store.clear()
            emit("ended", cell.key, known, 0.0, "")
            return known
        emit("started", cell.key, cell.config.label, cell.updates)
        with warnings_heard(emit) as warned:
            try:
                if isinstance(outside := cell.config.parts.trainer, OutsideTrainer):
                    ended: Trainer | EndedRun = train_outside(cell, outside, store, keep_every, emit)
                else:
                    ended = trainer = resume(cell, store, emit, make_observer)
                    with closing(trainer):
                        _train(trainer, cell, store, keep_every, emit)
                status, reason = finish(cell, store, ended, warned)
            except Exception as problem:  # a failed cell is recorded with its error; other cells continue
                if is_disk_full(problem):
                    raise
                status, reason = finish_failed(cell, store, problem, warned)
    emit("ended", cell.key, status, time.perf_counter() - began, reason)
    return status


@contextmanager
def warnings_heard(emit: Emit) -> Iterator[list[str]]:
    """Python's warnings inside the block, sent as `warned` instead of printed; those that differ in numbers once."""
    texts: list[str] = []
    kinds: set[str] = set()

    def hear(message: Warning | str, *_: object, **__: object) -> None:
        text = without_paths(" ".join(str(message).split()))
        if (kind := re.sub(r"\d+", "", text)) not in kinds:
            kinds.add(kind)
            texts.append(text)
            emit("warned", text)

    with warnings.catch_warnings():  # which also lets a second cell of this process warn again
        warnings.showwarning = hear
        yield texts


def resume(cell: PlannedCell, store: CellStore, emit: Emit, make_observer: ObserverFactory | None) -> Trainer:
    """The trainer at the newest checkpoint that is this cell's and undamaged, or at the start."""
    aside: list[str] = []
    for checkpoint in store.checkpoints():
        trainer = _trainer(cell, store, make_observer)
        try:
            trainer.load(checkpoint)
        except DamagedResultError as problem:
            trainer.close()
            aside.append(f"moved to {store.set_checkpoint_aside(checkpoint).name} ({without_paths(str(problem))})")
        except BaseException:  # the disk or the GPU does not answer: the checkpoint is fine
            trainer.close()
            raise
        else:
            _tell(cell, aside, f"resuming from update {trainer.step}", emit)
            return trainer
    _tell(cell, aside, "starting from scratch", emit)
    return _trainer(cell, store, make_observer)


def _tell(cell: PlannedCell, aside: list[str], then: str, emit: Emit) -> None:
    for text in aside:
        emit("message", f"{cell.config.label}: checkpoint {text}; {then}")


def _trainer(cell: PlannedCell, store: CellStore, make_observer: ObserverFactory | None) -> Trainer:
    config = cell.config
    if plugins_of(config) != config.plugins:
        raise UsageError("a plug-in of this cell was edited while the grid was running; run it again")
    if config.start and cell.start and start_digest(cell.start) != config.start:
        raise UsageError("the start policy of this cell was replaced while the grid was running; run it again")
    method = config.parts.method
    if config.series:
        method = method.with_series(_step_scales(store.final.with_name(config.series)), config.seed)
    if config.stop and make_observer is None:
        raise ValueError(f"cell {cell.key} may be stopped by {config.stop!r}, but no observer factory was given")
    observer = make_observer(config.stop) if make_observer and config.stop else None
    trainer = build_trainer(config, method, cell.start, cell.device, observer)
    if cell.origin is not None:
        trainer.load(cell.origin)
    return trainer


def _step_scales(donor: Path) -> list[float]:
    """Finite step scales of an ended cell, one per update.

    Raises:
        UsageError: The cell has not ended, or has none.
        DamagedResultError: It has ended, but its steps are damaged.
    """
    try:
        steps = donor / STEPS_FILE
        values = read_parquet(steps, seal_beside(steps), ["step_scale"])["step_scale"].to_pylist()
    except DamagedResultError as error:
        if (donor / CELL_FILE).exists():
            raise
        raise UsageError(f"cell {donor.name}, whose step scales this cell uses, has not ended: run it first") from error
    scales = [value for value in values if value is not None and math.isfinite(value)]
    if not scales:
        raise UsageError(f"cell {donor.name} took no step, so it has no step scales to use")
    return scales


def _train(trainer: Trainer, cell: PlannedCell, store: CellStore, keep_every: int, emit: Emit) -> None:
    pace, told = CheckpointPace(), time.perf_counter()
    while not trainer.status:
        reward, ess = trainer.advance()
        now = time.perf_counter()
        if keep_every and trainer.step % keep_every == 0:
            store.keep(trainer.step, trainer.save)
        if pace.due() and not trainer.status:
            with pace.writing(), store.checkpoint(trainer.step) as folder:
                save_checkpoint(cell, trainer, folder)
        if now - told > PROGRESS_SECONDS:
            store.claim.note = {"step": trainer.step, "reward": reward, "ess": ess}
            emit("progress", cell.key, trainer.step, reward, ess)
            told = now


class CheckpointPace:
    """When to write checkpoints: every `CHECKPOINT_SECONDS`, more rarely where they would take too much of the time."""

    def __init__(self) -> None:
        self._last, self._patience = time.perf_counter(), CHECKPOINT_SECONDS

    def due(self) -> bool:
        """Whether it is time for one."""
        return time.perf_counter() - self._last > self._patience

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Measure the checkpoints written inside the block."""
        began = time.perf_counter()
        yield
        self._last = time.perf_counter()
        took = (self._last - began) / CHECKPOINT_SHARE
        self._patience = max(CHECKPOINT_SECONDS, took) if CHECKPOINT_SECONDS else 0.0
