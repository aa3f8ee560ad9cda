"""Jobs that reach their time limit again and again."""

import pickle
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from fake_scheduler import cells_of, end_cell

from vcpo_bench.bench.cells.cell_store import CellStore
from vcpo_bench.bench.running.cell.run_cell import run_cell
from vcpo_bench.bench.running.schedulers import slurm_time_limit as time_limits
from vcpo_bench.bench.running.schedulers.loop.job import Job
from vcpo_bench.bench.running.schedulers.slurm import _Task
from vcpo_bench.bench.running.schedulers.slurm_time_limit import TimeLimit


def advance(out: Path, key: str, step: int) -> None:
    store = CellStore(out / "cells", key)
    with store.open(), store.checkpoint(step) as folder:
        (folder / "state").touch()


def resumed(limit: TimeLimit) -> TimeLimit:
    """As in the process that Slurm starts next."""
    again: TimeLimit = pickle.loads(pickle.dumps(limit))
    again.begin()
    return again


def test_a_job_goes_on_as_long_as_a_cell_of_it_gets_further(tmp_path: Path) -> None:
    cells = cells_of(tmp_path, 2)
    keys = tuple(cell.key for cell in cells)
    limit = TimeLimit(Job(tmp_path, keys), 5)
    limit.begin()
    limit.check()
    advance(tmp_path, keys[0], 1)
    limit = resumed(limit)
    limit.check()
    end_cell(tmp_path / "cells", cells[0])
    limit = resumed(limit)
    limit.check()
    limit = resumed(limit)
    with pytest.raises(RuntimeError, match="two time limits of 5 minutes were reached without a new checkpoint"):
        limit.check()


def test_a_preempted_job_need_not_have_got_further(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(time_limits, "time", SimpleNamespace(monotonic=lambda: clock.now))
    limit = TimeLimit(Job(tmp_path, ("key",)), 100)
    limit.begin()
    for _ in range(3):
        clock.now += 60.0
        limit.check()
    clock.now += 80 * 60.0
    limit.check()
    with pytest.raises(RuntimeError, match="two time limits"):
        limit.check()


def test_the_signal_ends_the_cell_that_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The handler runs in the middle of an update, where the error becomes that of the cell."""
    helpers = ModuleType("submitit.helpers")
    helpers.DelayedSubmission = lambda task: task  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "submitit.helpers", helpers)
    (cell,) = cells_of(tmp_path, 1, steps=50)
    task = _Task(Job(tmp_path, (cell.key,)), 5)
    assert task.checkpoint() is task
    events: list[tuple[object, ...]] = []

    def emit(*event: object) -> None:
        events.append(event)
        if event[0] == "progress":
            task.checkpoint()

    monkeypatch.setattr("vcpo_bench.bench.running.cell.run_cell.PROGRESS_SECONDS", 0.0)
    assert run_cell(cell, tmp_path / "cells", 0, emit, job="1_0") == "error"
    assert "RuntimeError: two time limits of 5 minutes were reached" in str(events[-1][-1])
