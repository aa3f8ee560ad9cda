"""Run several cells as one stack. Each is claimed, resumes, ends and fails as if it ran run_cell."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from vcpo_bench.bench.cells.cell_store import CellStore
from vcpo_bench.bench.cells.error_text import without_paths
from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.devices import release_memory
from vcpo_bench.bench.running.cell import run_cell
from vcpo_bench.bench.running.cell.ending import finish, finish_failed, save_checkpoint
from vcpo_bench.bench.running.cell.run_cell import CheckpointPace, Emit
from vcpo_bench.bench.stack.stack import Advanced, Stack
from vcpo_bench.bench.training.step_observer import ObserverFactory
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.files.claims import ClaimLostError
from vcpo_bench.files.disk_space import disk_full, is_disk_full


@dataclass(slots=True)
class _Member:
    """A cell of a stack that has not ended: its folder, whose claim `held` keeps, and its trainer."""

    cell: PlannedCell
    store: CellStore
    trainer: Trainer
    held: ExitStack
    began: float

    def end(self, emit: Emit, warned: Sequence[str], problem: Exception | None) -> None:
        """Write the results, and release the folder."""
        with self.held:
            if problem is None:
                status, reason = finish(self.cell, self.store, self.trainer, warned)
            else:
                status, reason = finish_failed(self.cell, self.store, problem, warned)
        emit("ended", self.cell.key, status, time.perf_counter() - self.began, reason)


@dataclass(slots=True)
class _Members:
    """The cells of a stack: those in training, and those that other processes have taken over.

    Each that ends records what Python has `warned` of until then.
    """

    emit: Emit
    warned: Sequence[str] = ()
    active: list[_Member] = field(default_factory=list)
    taken_over: list[PlannedCell] = field(default_factory=list)

    @contextmanager
    def released_if_taken_over(self, cell: PlannedCell) -> Iterator[None]:
        """Drop a cell if its claim turns out to be lost inside the block: the work of its new owner counts."""
        try:
            yield
        except ClaimLostError as problem:
            self.emit("message", f"{cell.config.label}: {without_paths(str(problem))}; its work counts")
            self.taken_over.append(cell)
            for member in [member for member in self.active if member.cell is cell]:
                member.held.close()
                self.active.remove(member)

    def close(self) -> None:
        """Give back every claim."""
        for member in self.active:
            member.held.close()


def run_stack(
    cells: Sequence[PlannedCell],
    cells_folder: Path,
    keep_every: int,
    emit: Emit,
    make_observer: ObserverFactory | None = None,
) -> None:
    """Train cells of one shape to their ends, each from its latest checkpoint if there is one.

    Where what they share fails (out of memory, say), each half goes on as a stack of its own, from the checkpoints;
    a cell left alone runs as any other. A cell that another process takes over leaves the stack, which waits for its
    end last. Arguments and errors are those of `run_cell`.

    Raises:
        DiskFullError: There is no space left; every cell keeps its latest checkpoint.
    """
    if len(cells) == 1:
        run_cell.run_cell(cells[0], cells_folder, keep_every, emit, make_observer)
        return
    members = _Members(emit)
    waiting = sorted(cells, key=lambda cell: cell.key)  # claimed in one order, so that none wait in a circle
    try:
        with run_cell.warnings_heard(emit) as members.warned:
            while waiting:
                with members.released_if_taken_over(waiting[0]):
                    members.active += _open(waiting[0], cells_folder, emit, make_observer)
                del waiting[0]
            _train(members, keep_every)
    except Exception as problem:
        if is_disk_full(problem):
            raise disk_full([cells_folder]) from problem
        count = len(members.active) + len(waiting)
        emit("message", f"a stack of {count} cells failed ({without_paths(_line(problem))}); trying each half")
    finally:
        members.close()
    left, taken_over = [*(member.cell for member in members.active), *waiting], members.taken_over
    del members
    release_memory(cells[0].device)
    for part in (left[: (len(left) + 1) // 2], left[(len(left) + 1) // 2 :], *([cell] for cell in taken_over)):
        if part:
            run_stack(part, cells_folder, keep_every, emit, make_observer)


def _line(problem: Exception) -> str:
    return (f"{type(problem).__name__}: {problem}".splitlines() or [""])[0]


def _open(cell: PlannedCell, cells_folder: Path, emit: Emit, make_observer: ObserverFactory | None) -> list[_Member]:
    """Claim a cell and open its trainer; nothing where it has ended, or ends now."""
    began, store = time.perf_counter(), CellStore(cells_folder, cell.key)
    with ExitStack() as opening:
        opening.enter_context(store.open(lambda text: emit("message", f"{cell.config.label}: {without_paths(text)}")))
        if (ended := store.ended()) is not None:
            store.clear()
            emit("ended", cell.key, ended, 0.0, "")
            return []
        emit("started", cell.key, cell.config.label, cell.updates)
        try:
            trainer = run_cell.resume(cell, store, emit, make_observer)
        except Exception as problem:  # recorded as the error of this cell; the others continue
            if is_disk_full(problem):
                raise
            status, reason = finish_failed(cell, store, problem)
            emit("ended", cell.key, status, time.perf_counter() - began, reason)
            return []
        opening.callback(trainer.close)
        return [_Member(cell, store, trainer, opening.pop_all(), began)]


def _train(members: _Members, keep_every: int) -> None:
    """Train until every member has ended; those that have leave."""
    pace, told, active = CheckpointPace(), time.perf_counter(), members.active
    _leave(members, {member.cell.key: None for member in active if member.trainer.status})
    while active:
        stack = Stack([member.trainer for member in active])
        while len(active) == len(stack.trainers):
            advanced = dict(zip(stack.trainers, stack.advance(), strict=True))
            _keep(members, advanced, keep_every)
            problems = {member.cell.key: advanced[member.trainer].problem for member in active}
            ended = {member.cell.key for member in active if member.trainer.status or problems[member.cell.key]}
            _leave(members, {key: problems[key] for key in ended})
            if active and pace.due():
                with pace.writing():
                    _save(members)
            if time.perf_counter() - told > run_cell.PROGRESS_SECONDS:
                told = time.perf_counter()
                _tell(members, advanced)


def _leave(members: _Members, ended: dict[str, Exception | None]) -> None:
    """End the members with these keys, each with its problem or with none."""
    for member in [member for member in members.active if member.cell.key in ended]:
        with members.released_if_taken_over(member.cell):
            member.end(members.emit, members.warned, ended[member.cell.key])
            members.active.remove(member)


def _keep(members: _Members, advanced: dict[Trainer, Advanced], keep_every: int) -> None:
    for member in list(members.active):
        trainer = member.trainer
        if keep_every and advanced[trainer].problem is None and trainer.step % keep_every == 0:
            with members.released_if_taken_over(member.cell):
                member.store.keep(trainer.step, trainer.save)


def _save(members: _Members) -> None:
    for member in list(members.active):
        with members.released_if_taken_over(member.cell), member.store.checkpoint(member.trainer.step) as folder:
            save_checkpoint(member.cell, member.trainer, folder)


def _tell(members: _Members, advanced: dict[Trainer, Advanced]) -> None:
    for member in members.active:
        reward, ess, _ = advanced[member.trainer]
        member.store.claim.note = {"step": member.trainer.step, "reward": reward, "ess": ess}
        members.emit("progress", member.cell.key, member.trainer.step, reward, ess)
