"""Cells whose ends show late: a job that has gone and a cell that has not ended are no death yet."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_scheduler import FakeScheduler, cells_of, end_cell
from nfs_client import NfsClients
from pool_jobs import Log

from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.schedulers.loop import scheduler_loop
from vcpo_bench.bench.running.schedulers.loop.scheduler_loop import SchedulerLoop
from vcpo_bench.files import claims

NFS_SECONDS = 60.0
"""Longest time for which an NFS mount with its defaults hides a change (`acregmax`, `acdirmax`)."""


def run_loop(scheduler: FakeScheduler, out: Path, cells: list) -> tuple[int, Log]:
    log = Log()
    loop = SchedulerLoop(scheduler, cells, RunOptions(out, 0))
    with loop.canceling_on_stop():
        loop.submit()
        return loop.wait(log), log


class Elsewhere:
    """A machine that sees everything at once: its thread must start before any other becomes a client."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work, self._told = work, threading.Event()
        self._thread = threading.Thread(target=self._wait, daemon=True)
        self._thread.start()

    def _wait(self) -> None:
        self._told.wait()
        self._work()

    def do(self) -> None:
        self._told.set()
        self._thread.join()


def publish(made: Path, cells: Path) -> None:
    for path in list(made.iterdir()):
        os.rename(path, cells / path.name)


def test_a_cell_may_take_longer_to_show_its_end_than_nfs_hides_it() -> None:
    lease = float(os.environ.get("VCPO_BENCH_LEASE_SECONDS", "120"))
    assert scheduler_loop.SETTLE_SHARE * lease > NFS_SECONDS * lease / 120


@pytest.mark.parametrize("completed", [True, False])
def test_an_end_that_shows_late_is_no_death(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, completed: bool) -> None:
    """The whole watch, as a client of a file system that hides a change for half a lease, as NFS does by default."""
    monkeypatch.setattr(claims, "LEASE_SECONDS", 4.0)
    scheduler, cells = FakeScheduler(), cells_of(tmp_path, 2)
    (tmp_path / "made").mkdir()
    for cell in cells:
        end_cell(tmp_path / "made", cell)
    clients = NfsClients(2.0, monkeypatch)
    node = Elsewhere(lambda: publish(tmp_path / "made", tmp_path / "cells"))

    def work() -> None:
        if scheduler.running and scheduler.asked == 3:
            node.do()
            scheduler.completed |= scheduler.running.keys() if completed else set()
            scheduler.running.clear()

    scheduler.on_look = work
    clients.join()
    failed, log = run_loop(scheduler, tmp_path, cells)
    assert clients.stale, "nothing was hidden"
    assert failed == 0
    assert len(scheduler.calls) == 1
    assert not log.names("message")
    assert [status for _, status, *_ in log.names("ended")] == ["completed", "completed"]


def test_a_job_that_completed_is_no_death(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cell does not show: the folder that the node writes to is another one, maybe. No end of the cell is made."""
    monkeypatch.setattr(claims, "LEASE_SECONDS", 0.1)
    scheduler, cells = FakeScheduler(), cells_of(tmp_path, 1)

    def complete() -> None:
        scheduler.completed |= scheduler.running.keys()
        scheduler.running.clear()

    scheduler.on_look = complete
    failed, log = run_loop(scheduler, tmp_path, cells)
    assert failed == 1
    assert len(scheduler.calls) == 3
    assert not list((tmp_path / "cells").iterdir())
    *again, last = [text for (text,) in log.names("message")]
    assert all("completed, and its end is not to be seen; submitted again" in text for text in again)
    assert f"3 jobs completed, and its end is not to be seen in {tmp_path}: do they share it?" in last


def test_a_completed_job_does_not_bring_a_cell_nearer_to_its_last_death(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "LEASE_SECONDS", 0.1)
    scheduler, (cell,) = FakeScheduler(), cells_of(tmp_path, 1)

    def end() -> None:
        number = len(scheduler.calls)
        if number == 4 and scheduler.running:
            end_cell(tmp_path / "cells", cell)
        scheduler.completed |= scheduler.running.keys() if number % 2 else set()
        scheduler.running.clear()

    scheduler.on_look = end
    failed, log = run_loop(scheduler, tmp_path, [cell])
    assert failed == 0
    assert [status for _, status, *_ in log.names("ended")] == ["completed"]
    assert len(scheduler.calls) == 4
