"""Forks: recorded runs continued with other methods from the same weights, optimizer, queue and random streams."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from vcpo_bench.bench.cells.config import plugins_of
from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.cells.results_folder import ResultsFolder, ended_keys
from vcpo_bench.bench.regimes import check_method
from vcpo_bench.bench.regimes.base import StalenessSchedule
from vcpo_bench.bench.replay.recorded_cell import RecordedCell
from vcpo_bench.bench.replay.replay import Replay, one_thread, origin_folder
from vcpo_bench.bench.tasks.catalog import check_turns
from vcpo_bench.errors import DamagedResultError, UsageError
from vcpo_bench.files.checksums import verify_sealed
from vcpo_bench.files.durable import sync_folder, sync_names
from vcpo_bench.files.folders import made
from vcpo_bench.methods import Method, parse_method
from vcpo_bench.records import CELL_FILE, CELLS, ORIGINS_FOLDER, STATE_FILE
from vcpo_bench.records.cell_file import read_cell_file


@dataclass(frozen=True, slots=True)
class ForkSpec:
    """What to fork.

    Attributes:
        parents: Runs to continue; each gives one cell per method.
        at: Number of updates after which the methods diverge.
        methods: Method expressions; the run's own method is always added, as the control.
        out: Results folder of the forks.
        steps: Total number of updates, including those before the fork; None: as many as the parent's.
    """

    parents: Sequence[RecordedCell]
    at: int
    methods: Sequence[str]
    out: Path
    steps: int | None = None

    @property
    def device(self) -> str:
        """Device that limits how many cells train at once: a GPU if a parent used one, else the CPU."""
        return next((parent.device for parent in self.parents if parent.device.startswith("cuda")), "cpu")


def plan_forks(spec: ForkSpec) -> list[PlannedCell]:
    """The cells of a fork, the controls last.

    Raises:
        UsageError: The update is not within a run, nothing is left to train, a method cannot be forked there, or the
            results folder is that of a parent.
        vcpo_bench.methods.ExpressionError: A method expression cannot be read.
    """
    if not spec.methods:
        raise UsageError("--methods: the list is empty; give at least one method")
    if spec.at < 1:
        raise UsageError(f"--at {spec.at}: before the first update there is nothing to share; use vcpo-bench run")
    asked = [parse_method(text) for text in spec.methods]
    cells: dict[str, PlannedCell] = {}
    for parent in spec.parents:
        if parent.results == spec.out.resolve():
            raise UsageError(
                f"--out {spec.out}: holds the run itself, and tables would average both; choose another folder"
            )
        own = parent.config.parts.method
        for method in (*asked, own):
            cell = _plan(spec, parent, method, control=all(m.canonical != own.canonical for m in asked))
            cells.setdefault(cell.key, cell)
    return sorted(cells.values(), key=lambda cell: cell.control)


def _plan(spec: ForkSpec, parent: RecordedCell, method: Method, control: bool) -> PlannedCell:
    parent.check(spec.at)
    old = parent.config
    steps = old.steps if spec.steps is None else spec.steps
    schedule = parent.schedule
    left = schedule.updates(steps) - spec.at
    if left < 1:
        raise UsageError(f"--at {spec.at}: no update is left of {schedule.updates(steps)}; give --steps N with more")
    _check_method(method, old.parts.method, spec.at, schedule)
    check_turns(method.canonical, method.needs, old.parts.task)
    config = replace(old, method=method.canonical, steps=steps, parent=parent.key, fork_step=spec.at, stop="")
    config = replace(config, plugins=plugins_of(config))
    return PlannedCell(
        config,
        config.key(method.version),
        control and method.canonical == old.method,
        float(old.prompts * old.responses * left),
        schedule.updates(steps),
        parent.start,
        origin_folder(spec.out, parent.key, spec.at),
        parent.device,
    )


def _check_method(method: Method, own: Method, at: int, schedule: StalenessSchedule) -> None:
    check_method(method.canonical, method.needs, schedule)
    if method.needs_series:
        raise UsageError(f"{method.canonical}: uses the step scales of another cell, which a fork does not have")
    if not method.measures_drift <= own.measures_drift:
        raise UsageError(f"{method.canonical}: needs the weights of past versions, which the run did not keep")
    if "vocabulary_logp" in method.needs and "vocabulary_logp" not in own.needs:
        raise UsageError(f"{method.canonical}: needs the sampler's whole distributions, which the run did not record")
    missing = "proximal_logp" in method.needs and "proximal_logp" not in own.needs
    if missing and not schedule.proximal(at):
        raise UsageError(
            f"{method.canonical} --at {at}: the run saved no proximal policy for the current rollout; "
            "fork at the first update of a rollout"
        )


def write_origins(spec: ForkSpec, cells: Sequence[PlannedCell], wait: bool, say: Callable[[str], None]) -> None:
    """Replay the parents of the missing cells and save the states from which the forks start.

    Args:
        spec: What to fork.
        cells: Its plan.
        wait: Wait for another run on the folder to finish instead of raising.
        say: Called with one line per run that is replayed.

    Raises:
        UsageError: The folder cannot be used, holds forks at another update, or another process is writing to it.
    """
    folder = ResultsFolder(spec.out)
    _check_same_update(spec)
    done = ended_keys(spec.out)
    missing = {cell.origin for cell in cells if cell.key not in done}
    with folder.locked(wait, say), one_thread():
        for parent in spec.parents:
            origin = origin_folder(spec.out, parent.key, spec.at)
            if origin in missing and not _is_usable(origin, say):
                say(_write_origin(parent, spec.at, origin))


def _check_same_update(spec: ForkSpec) -> None:
    """Refuse a folder with forks at another update: tables would count one parent run as two seeds.

    Raises:
        UsageError: It is one.
    """
    for file in sorted((spec.out / CELLS).glob(f"*/{CELL_FILE}")):
        try:
            at = read_cell_file(file)["config"].get("fork_step", 0)
        except DamagedResultError:  # the run says so, and makes the cell again
            continue
        if at != spec.at:
            there = f"forks at update {at}" if at else "runs that are no forks"
            raise UsageError(
                f"--out {spec.out}: holds {there}, and tables would count one run twice; choose another folder"
            )


def _is_usable(origin: Path, say: Callable[[str], None]) -> bool:
    """Whether a fork state is there; a damaged one is removed, since the replay writes it again."""
    try:
        verify_sealed(origin / STATE_FILE)
    except DamagedResultError as problem:
        if origin.is_dir():
            say(f"{problem}; it is made again")
            shutil.rmtree(origin)
        return False
    return True


def _write_origin(parent: RecordedCell, at: int, origin: Path) -> str:
    replay = Replay(parent, at)
    with closing(replay.trainer):
        replay.to(at)
        draft = origin.with_name(f"draft-{origin.name}")
        shutil.rmtree(draft, ignore_errors=True)
        made(origin.parents[1], ORIGINS_FOLDER, draft.name)
        replay.trainer.save(draft)
        sync_folder(draft)
        draft.rename(origin)
        sync_names(origin.parent)
        if at < parent.updates:
            replay.to(at + 1)  # its row is the first that depends on all of the state just saved
        return replay.summary()
