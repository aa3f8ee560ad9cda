"""Run several cells as one stack; each resumes, checkpoints, ends and fails as if it ran alone."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from vcpo_bench.bench.cells.cell_store import CellStore
from vcpo_bench.bench.cells.error_text import without_paths
from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.devices import release_memory
from vcpo_bench.bench.running import run_cell as alone
from vcpo_bench.bench.running.run_cell import CheckpointPace, Emit
from vcpo_bench.bench.stack.stack import Advanced, Stack
from vcpo_bench.bench.training.step_observer import ObserverFactory
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.files.disk_space import disk_full, is_disk_full


@dataclass(slots=True)
class _Member:
    """A cell of a stack that has not ended: its folder, which `held` locks, and its trainer."""

    cell: PlannedCell
    store: CellStore
    trainer: Trainer
    held: ExitStack
    began: float

    def end(self, emit: Emit, problem: Exception | None = None) -> None:
        """Write the results, and let the folder go."""
        with self.held:
            if problem is None:
                status, reason = alone.finish(self.cell, self.store, self.trainer)
            else:
                status, reason = alone.finish_failed(self.cell, self.store, problem)
        emit("ended", self.cell.key, status, time.perf_counter() - self.began, reason)


def run_stack(
    cells: Sequence[PlannedCell],
    cells_folder: Path,
    keep_every: int,
    emit: Emit,
    make_observer: ObserverFactory | None = None,
) -> None:
    """Train cells of one shape to their ends, each from its latest checkpoint if there is one.

    Where what they share fails (out of memory, say), each half goes on as a stack of its own, from the checkpoints;
    a cell left alone runs as any other. Arguments and errors are those of `run_cell`.

    Raises:
        DiskFullError: There is no space left; every cell keeps its latest checkpoint.
    """
    if len(cells) == 1:
        alone.run_cell(cells[0], cells_folder, keep_every, emit, make_observer)
        return
    members: list[_Member] = []
    try:
        for cell in cells:
            members += _open(cell, cells_folder, emit, make_observer)
        _train(members, keep_every, emit)
    except Exception as problem:
        if is_disk_full(problem):
            raise disk_full([cells_folder]) from problem
        left = [member.cell for member in members]
        emit("message", f"a stack of {len(left)} cells failed ({without_paths(_line(problem))}); trying each half")
    finally:
        for member in members:
            member.held.close()
    left = [member.cell for member in members]
    members.clear()
    release_memory(cells[0].device)
    for half in (left[: (len(left) + 1) // 2], left[(len(left) + 1) // 2 :]):
        if half:
            run_stack(half, cells_folder, keep_every, emit, make_observer)


def _line(problem: Exception) -> str:
    return (f"{type(problem).__name__}: {problem}".splitlines() or [""])[0]


def _open(cell: PlannedCell, cells_folder: Path, emit: Emit, make_observer: ObserverFactory | None) -> list[_Member]:
    """Lock a cell and open its trainer; nothing where it has ended, or ends now."""
    began, store = time.perf_counter(), CellStore(cells_folder, cell.key)
    with ExitStack() as opening:
        opening.enter_context(store.open(lambda text: emit("message", f"{cell.config.label}: {without_paths(text)}")))
        if (ended := store.ended()) is not None:
            store.clear()
            emit("ended", cell.key, ended, 0.0, "")
            return []
        emit("started", cell.key, cell.config.label, cell.updates)
        try:
            trainer = alone.resume(cell, store, emit, make_observer)
        except Exception as problem:  # recorded as the error of this cell; the others continue
            if is_disk_full(problem):
                raise
            status, reason = alone.finish_failed(cell, store, problem)
            emit("ended", cell.key, status, time.perf_counter() - began, reason)
            return []
        opening.callback(trainer.close)
        return [_Member(cell, store, trainer, opening.pop_all(), began)]


def _train(members: list[_Member], keep_every: int, emit: Emit) -> None:
    """Train until every member has ended; those that have leave the list."""
    pace, told = CheckpointPace(), time.perf_counter()
    _leave(members, {member.cell.key: None for member in members if member.trainer.status}, emit)
    while members:
        stack, ended = Stack([member.trainer for member in members]), dict[str, Exception | None]()
        while not ended:
            found = stack.advance()
            for member, each in zip(members, found, strict=True):
                _keep(member, each, keep_every)
                if each.problem or member.trainer.status:
                    ended[member.cell.key] = each.problem
            _leave(members, ended, emit)
            if members and pace.due():
                with pace.writing():
                    _save(members)
            if time.perf_counter() - told > alone.PROGRESS_SECONDS:
                told = time.perf_counter()
                _tell(members, dict(zip(stack.trainers, found, strict=True)), emit)


def _leave(members: list[_Member], ended: dict[str, Exception | None], emit: Emit) -> None:
    """End the members with these keys, each with its problem or with none."""
    for member in [member for member in members if member.cell.key in ended]:
        member.end(emit, ended[member.cell.key])
        members.remove(member)


def _keep(member: _Member, each: Advanced, keep_every: int) -> None:
    trainer = member.trainer
    if keep_every and each.problem is None and trainer.step % keep_every == 0:
        member.store.keep(trainer.step, trainer.save)


def _save(members: Sequence[_Member]) -> None:
    for member in members:
        with member.store.checkpoint(member.trainer.step) as folder:
            member.trainer.save(folder)


def _tell(members: Sequence[_Member], found: dict[Trainer, Advanced], emit: Emit) -> None:
    for member in members:
        each = found[member.trainer]
        emit("progress", member.cell.key, member.trainer.step, each.reward, each.ess)
