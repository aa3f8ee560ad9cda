"""Stacks on disk: the folders of cells that ran alone, kills and resumes, errors of one cell and of all."""

import os
import signal
import warnings
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pool_jobs import Log, children
from stacked_cells import cell

from vcpo_bench.bench.cells.cell_store import CellStore
from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.cells.results_folder import ResultsFolder
from vcpo_bench.bench.running.cell import run_cell as alone
from vcpo_bench.bench.running.cell.run_stack import run_stack
from vcpo_bench.bench.running.cell_job import CellJob
from vcpo_bench.bench.running.pool.pool import run_jobs
from vcpo_bench.bench.running.pool.stacks import check_stack, stacks
from vcpo_bench.bench.stack.stack import Advanced, Stack
from vcpo_bench.errors import UsageError
from vcpo_bench.files import claims
from vcpo_bench.files.checksums import verify_sealed
from vcpo_bench.files.claim_files import PREFIX
from vcpo_bench.records import CELL_FILE, EVALS_FILE, LAGS_FILE, STEPS_FILE

TABLES = (STEPS_FILE, EVALS_FILE, LAGS_FILE)
TIMED = {"seconds", "ended", "checksum", "files", "provenance"}
"""Fields of `cell.json` that depend on when and where a cell ran, and on how long it took."""


def planned(config: CellConfig) -> PlannedCell:
    return PlannedCell(config, config.key(1), False, 1.0, config.steps)


def small(count: int, **more: object) -> list[PlannedCell]:
    lags = {"clip": 0, "vespo": 2}
    methods = list(lags)
    configs = [cell(methods[n % 2], seed=n, lag=lags[methods[n % 2]], **({"steps": 6} | more)) for n in range(count)]
    return [planned(config) for config in configs]


def cells_of(folder: Path) -> Path:
    return ResultsFolder(folder).cells


def emitted(log: Log):
    return lambda name, *arguments: getattr(log, name)(*arguments)


def values(folder: Path, key: str) -> dict[str, list]:
    """What is recorded of a cell, without times."""
    tables = {name: pq.read_table(folder / "cells" / key / name).to_pydict() for name in TABLES}
    return {f"{n}/{c}": v for n, table in tables.items() for c, v in table.items() if not c.startswith("seconds")}


def check_equal(one: Path, other: Path, cells: list[PlannedCell]) -> None:
    for each in cells:
        assert repr(values(one, each.key)) == repr(values(other, each.key))
        facts = [verify_sealed(folder / "cells" / each.key / CELL_FILE) for folder in (one, other)]
        ours, theirs = ({name: value for name, value in fact.items() if name not in TIMED} for fact in facts)
        assert ours == theirs
        assert facts[0].keys() == facts[1].keys()


def run_alone(folder: Path, cells: list[PlannedCell]) -> Path:
    for each in cells:
        assert alone.run_cell(each, cells_of(folder), 0, emitted(Log())) == "completed"
    return folder


def test_the_folders_are_those_of_cells_alone(tmp_path: Path) -> None:
    cells = [*small(3), *(planned(replace(each.config, steps=4)) for each in small(1))]
    log = Log()
    run_stack(cells, cells_of(tmp_path / "stack"), 3, emitted(log))
    assert sorted(key for key, *_ in log.names("ended")) == sorted(each.key for each in cells)
    assert {status for _, status, *_ in log.names("ended")} == {"completed"}
    assert sorted(p.name for p in (tmp_path / "stack/cells" / cells[0].key / "checkpoints").iterdir()) == [
        "00000003",
        "00000006",
    ]
    check_equal(tmp_path / "stack", run_alone(tmp_path / "alone", cells), cells)
    again = Log()
    run_stack(cells, cells_of(tmp_path / "stack"), 3, emitted(again))
    assert not again.names("started")


class Interrupted(BaseException):
    """Like a kill: no handler sees it."""


def test_a_stack_resumes_cell_by_cell_also_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alone, "CHECKPOINT_SECONDS", 0.0)
    cells = small(4)
    advance, seen = Stack.advance, []

    def interrupted(self: Stack) -> list[Advanced]:
        seen.append(1)
        if len(seen) == 4:
            raise Interrupted
        return advance(self)

    monkeypatch.setattr(Stack, "advance", interrupted)
    with pytest.raises(Interrupted):
        run_stack(cells, cells_of(tmp_path / "stack"), 0, emitted(Log()))
    monkeypatch.setattr(Stack, "advance", advance)
    assert len(list((tmp_path / "stack" / "cells").glob("*/checkpoint-00000003"))) == 4
    run_alone(tmp_path / "stack", cells[:1])
    run_stack(cells, cells_of(tmp_path / "stack"), 0, emitted(Log()))
    check_equal(tmp_path / "stack", run_alone(tmp_path / "alone", cells), cells)


def test_a_cell_that_fails_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = small(3)
    record = alone.Trainer.record

    def failing(self: alone.Trainer, *arguments: object) -> float:
        if self.config.seed == 1 and self.step == 2:
            raise ValueError("something in this cell")
        return record(self, *arguments)

    monkeypatch.setattr(alone.Trainer, "record", failing)
    log = Log()
    run_stack(cells, cells_of(tmp_path / "stack"), 0, emitted(log))
    ended = {key: (status, reason) for key, status, _, reason in log.names("ended")}
    assert ended[cells[1].key] == ("error", "ValueError: something in this cell")
    others = [cells[0], cells[2]]
    assert {ended[each.key][0] for each in others} == {"completed"}
    check_equal(tmp_path / "stack", run_alone(tmp_path / "alone", others), others)


def test_a_stack_that_fails_as_a_whole_goes_on_in_halves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells, advance = small(3), Stack.advance

    def too_many(self: Stack) -> list[Advanced]:
        if len(self.trainers) > 2:
            raise MemoryError("three are too many")
        return advance(self)

    monkeypatch.setattr(Stack, "advance", too_many)
    log = Log()
    run_stack(cells, cells_of(tmp_path / "stack"), 0, emitted(log))
    (said,) = (text for (text,) in log.names("message"))
    assert said == "a stack of 3 cells failed (MemoryError: three are too many); trying each half"
    assert [status for _, status, *_ in log.names("ended")] == ["completed"] * 3
    check_equal(tmp_path / "stack", run_alone(tmp_path / "alone", cells), cells)


def test_a_cell_that_cannot_be_claimed_at_the_moment_costs_none_of_the_stack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells, open_store, tried = small(3), CellStore.open, list[str]()

    def opened(self: CellStore, *arguments: object):
        tried.append(self.final.name)
        if len(tried) == 2:
            raise OSError(5, "the disk does not answer")
        return open_store(self, *arguments)

    monkeypatch.setattr(CellStore, "open", opened)
    log = Log()
    run_stack(cells, cells_of(tmp_path), 0, emitted(log))
    assert sorted(key for key, *_ in log.names("ended")) == sorted(each.key for each in cells)


@pytest.mark.filterwarnings("always:something about")
def test_warnings_are_shown_and_recorded_as_those_of_a_cell_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells, advance = small(2), Stack.advance

    def warns(self: Stack) -> list[Advanced]:
        warnings.warn("something about all of them", stacklevel=1)
        return advance(self)

    monkeypatch.setattr(Stack, "advance", warns)
    log = Log()
    run_stack(cells, cells_of(tmp_path), 0, emitted(log))
    assert log.names("warned") == [("something about all of them",)]
    for each in cells:
        facts = verify_sealed(tmp_path / "cells" / each.key / CELL_FILE)
        assert facts["warnings"] == ["something about all of them"]


def test_every_cell_is_claimed_and_one_that_is_taken_over_leaves_the_stack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alone, "CHECKPOINT_SECONDS", 0.0)
    cells, advance, held = small(3), Stack.advance, []
    partial = {each.key: CellStore(cells_of(tmp_path / "stack"), each.key).partial for each in cells}

    def taken_over(self: Stack) -> list[Advanced]:
        found = advance(self)
        if len(self.trainers) == 3 and self.trainers[0].step == 3:
            held.extend(claims.claimed(path) for path in partial.values())
            (claim,) = partial[cells[1].key].glob(f"{PREFIX}*")
            claim.unlink()
        return found

    monkeypatch.setattr(Stack, "advance", taken_over)
    log = Log()
    run_stack(cells, cells_of(tmp_path / "stack"), 0, emitted(log))
    assert len({one.holder.token for one in held if one}) == 3
    (said,) = (text for (text,) in log.names("message"))
    assert said.startswith(f"{cells[1].config.label}: ")
    assert said.endswith("was taken over by another process; its work counts")
    assert [status for _, status, *_ in log.names("ended")] == ["completed"] * 3
    check_equal(tmp_path / "stack", run_alone(tmp_path / "alone", cells), cells)


@pytest.mark.slow
def test_a_stack_whose_worker_is_killed_twice_is_run_cell_by_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VCPO_BENCH_CHECKPOINT_SECONDS", "0")
    cells, kills = small(3, steps=40), []

    def kill_twice(name: str, arguments: tuple) -> None:
        # what a dead worker has sent arrives after its death
        alive = len(log.names("started")) > len(cells) * len(kills)
        if name == "progress" and alive and len(kills) < 2:
            kills.append(name)
            for pid in children():
                os.kill(pid, signal.SIGKILL)

    log = Log(kill_twice)
    assert run_jobs([CellJob(tuple(cells), cells_of(tmp_path / "stack"), 0)], 1, log) == 0
    assert len(log.names("message")) == 2
    assert all("and 2 more: its worker died (SIGKILL)" in text for (text,) in log.names("message"))
    assert sorted(key for key, *_ in log.names("ended")) == sorted(each.key for each in cells)
    check_equal(tmp_path / "stack", run_alone(tmp_path / "alone", cells), cells)


def test_which_cells_are_stacked_and_why_others_are_not() -> None:
    said: list[str] = []
    lone = [
        planned(cell("clip", lag=2, regime="inflight")),
        planned(cell("clip", lag=2, regime="fifo(publish_every=2)")),
        planned(cell("clip", record="full")),
        planned(cell("clip", model="tiny@0")),
    ]
    parts = stacks([*small(5), planned(cell("clip", task="walk")), planned(cell("vcpo")), *lone], "3", 1, said.append)
    assert sorted(map(len, parts)) == [1] * 6 + [2, 3]
    assert len(said) == len(lone)
    assert said[0] == "1 cell runs alone, not in a stack: the regime inflight does not draw whole batches as planned"


@pytest.mark.parametrize(
    ("cells", "jobs", "sizes"),
    [
        ([cell("clip", seed=seed, prompts=8, responses=8) for seed in range(60)], 2, [10] * 6),  # 3 for each worker
        ([cell("clip", seed=seed) for seed in range(5)], 4, [1, 1, 1, 2]),
        ([cell("clip", seed=seed) for seed in range(3)], 8, [1] * 3),
        ([cell("clip", seed=seed, prompts=128) for seed in range(3)], 1, [1] * 3),  # large products gain nothing
        ([cell("clip", seed=seed, device="cuda") for seed in range(130)], 2, [65, 65]),
        ([cell("clip", model="tiny@0")] * 3, 1, [1] * 3),
    ],
)
def test_how_cells_are_stacked_unless_asked(cells: list[CellConfig], jobs: int, sizes: list[int]) -> None:
    said: list[str] = []
    parts = stacks([planned(each) for each in cells], "auto", jobs, said.append)
    assert sorted(map(len, parts)) == sizes
    assert not said


def test_what_stacks_can_be_asked_for() -> None:
    for asked in ("auto", "off", "32"):
        check_stack(asked)
    for wrong in ("1", "0", "many", "-3"):
        with pytest.raises(UsageError, match=f"--stack {wrong}: give a number of cells from 2 on, auto or off"):
            check_stack(wrong)
