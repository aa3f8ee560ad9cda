"""One writer of grid.json and launch.json: a command that stood still beyond its lease ends, and writes neither."""

from pathlib import Path

import pytest
from fake_scheduler import FakeScheduler, cells_of, end_cell
from pool_jobs import Log

from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.cells.results_folder import ResultsFolder
from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.run_grid import run_grid
from vcpo_bench.bench.running.schedulers.local import Local
from vcpo_bench.bench.running.schedulers.scheduled import watch_jobs
from vcpo_bench.errors import UsageError
from vcpo_bench.files import claims
from vcpo_bench.files.checksums import read_sealed
from vcpo_bench.files.claims import Claim
from vcpo_bench.progress import GridObserver

TAKEN = "another command took the folder over"


@pytest.fixture(autouse=True)
def _short_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "LEASE_SECONDS", 0.3)


def stand_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Claims made from now on have no heartbeat."""
    monkeypatch.setattr(Claim, "_beat", lambda claim: None)


def test_the_list_of_cells_stays_as_the_second_command_wrote_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = ResultsFolder(tmp_path), ResultsFolder(tmp_path)
    with monkeypatch.context() as patch:
        stand_still(patch)
        held = first.locked(wait=False)
        held.__enter__()
    first.update_grid({"a": {"control": False}})
    with second.locked(wait=True):
        second.update_grid({"b": {"control": False}})
        written = (tmp_path / "grid.json").read_bytes()
        with pytest.raises(UsageError, match=TAKEN):
            first.update_grid({"c": {"control": False}})
        held.__exit__(None, None, None)
        second.check()
        assert (tmp_path / "grid.json").read_bytes() == written
    assert list(read_sealed(tmp_path / "grid.json")["cells"]) == ["a", "b"]


class Watched(Local):
    """The local launcher, in whose place a test's scheduler runs the cells."""

    scheduler: FakeScheduler

    def run(self, cells: list[PlannedCell], options: RunOptions, observer: GridObserver) -> int:
        return watch_jobs("fake", Watched.scheduler, cells, options, observer)


def test_a_watcher_that_was_followed_submits_nothing_writes_nothing_and_cancels_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, scheduler = tmp_path / "out", FakeScheduler()
    cells, second = cells_of(out, 3), ResultsFolder(out)
    following = second.locked(wait=True)

    def follow() -> None:
        if scheduler.asked == 3:  # the first two jobs have died meanwhile: who goes on would submit them again
            with monkeypatch.context() as patch:
                patch.setattr(Claim, "_beat", beat)
                following.__enter__()
            scheduler.running.clear()
            launch.append((out / ".launch" / "launch.json").read_bytes())

    beat, launch = Claim._beat, list[bytes]()
    stand_still(monkeypatch)
    scheduler.on_look, Watched.scheduler = follow, scheduler
    monkeypatch.setattr("vcpo_bench.bench.running.schedulers.loop.scheduler_loop.SETTLE_SHARE", 0.0)
    with pytest.raises(UsageError, match=TAKEN):
        run_grid(cells, RunOptions(out, 0), Log(), Watched())
    second.check()
    assert [len(call) for call in scheduler.calls] == [3]
    assert not scheduler.canceled
    assert [(out / ".launch" / "launch.json").read_bytes()] == launch
    following.__exit__(None, None, None)


def test_a_watcher_that_was_followed_removes_nothing_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All cells have ended, but the other command may have submitted more."""
    out, scheduler = tmp_path / "out", FakeScheduler()
    cells, second = cells_of(out, 1), ResultsFolder(out)
    following = second.locked(wait=True)

    def end() -> None:
        if scheduler.asked == 2:
            with monkeypatch.context() as patch:
                patch.setattr(Claim, "_beat", beat)
                following.__enter__()
            end_cell(out / "cells", cells[0])

    beat = Claim._beat
    stand_still(monkeypatch)
    scheduler.on_look, Watched.scheduler = end, scheduler
    with pytest.raises(UsageError, match=TAKEN):
        run_grid(cells, RunOptions(out, 0), Log(), Watched())
    assert (out / ".launch" / "launch.json").exists()
    following.__exit__(None, None, None)
