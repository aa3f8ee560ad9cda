"""Cells that are lost after their third death: nobody waits for the claims of a lost node, and deaths are kept."""

from dataclasses import replace
from pathlib import Path

import pytest
from fake_scheduler import FakeScheduler, cells_of, end_cell
from pool_jobs import Log

from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.schedulers.loop import scheduler_loop
from vcpo_bench.bench.running.schedulers.loop.cell_state import Phase
from vcpo_bench.bench.running.schedulers.loop.launch_file import LaunchFile
from vcpo_bench.bench.running.schedulers.loop.lost_cells import LostCells
from vcpo_bench.bench.running.schedulers.loop.scheduler_loop import SchedulerLoop
from vcpo_bench.files import claims
from vcpo_bench.files.claim_files import claim_path
from vcpo_bench.files.claim_text import Claimed
from vcpo_bench.files.lock_holders import this_process


def claim_of_a_lost_node(out: Path, cell: PlannedCell, job: str) -> None:
    folder = out / "cells" / f"{cell.key}.partial"
    folder.mkdir()
    holder = replace(this_process(), host="node7", machine="another boot", pid=4)
    claim_path(folder, 1).write_bytes(Claimed(holder, job).bytes())


def test_the_claims_of_the_jobs_that_have_gone_are_followed_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "LEASE_SECONDS", 10_000.0)
    monkeypatch.setattr(scheduler_loop, "SETTLE_SHARE", 0.0)
    scheduler, cells, log = FakeScheduler(), cells_of(tmp_path, 3), Log()

    def lose_the_node() -> None:
        if scheduler.running and len(scheduler.calls) == 3:
            for handle, job in scheduler.running.items():
                (cell,) = [cell for cell in cells if cell.key in job.keys]
                claim_of_a_lost_node(tmp_path, cell, handle)
        scheduler.running.clear()

    scheduler.on_look = lose_the_node
    loop = SchedulerLoop(scheduler, cells, RunOptions(tmp_path, 0))
    loop.submit()
    assert loop.wait(log) == 3
    assert {(status, reason) for _, status, _, reason in log.names("ended")} == {
        ("error", "its job ended early 3 times (NODE_FAIL)")
    }


def test_a_claim_of_another_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others are looked after meanwhile; it is recorded once that claim has been silent for a lease."""
    monkeypatch.setattr(claims, "LEASE_SECONDS", 0.3)
    monkeypatch.setattr(scheduler_loop, "SETTLE_SHARE", 0.0)
    scheduler, cells, log = FakeScheduler(), cells_of(tmp_path, 2), Log()
    doomed, other = cells
    claim_of_a_lost_node(tmp_path, doomed, "of another submitter")
    loop = SchedulerLoop(scheduler, cells, RunOptions(tmp_path, 0))

    def die() -> None:
        scheduler.running = {handle: job for handle, job in scheduler.running.items() if job.keys == (other.key,)}
        if loop._states[doomed.key].phase is Phase.LOST and scheduler.running:
            monkeypatch.setattr(claims, "LEASE_SECONDS", 10_000.0)
            end_cell(tmp_path / "cells", other)
            scheduler.running.clear()

    def go_on(name: str, arguments: object) -> None:
        if name == "ended":
            monkeypatch.setattr(claims, "LEASE_SECONDS", 0.3)

    scheduler.on_look, log = die, Log(go_on)
    loop.submit()
    assert loop.wait(log) == 1
    assert [(key, status) for key, status, *_ in log.names("ended")] == [
        (other.key, "completed"),
        (doomed.key, "error"),
    ]


def test_what_another_has_is_recorded_once_it_falls_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (cell,) = cells_of(tmp_path, 1)
    claim_of_a_lost_node(tmp_path, cell, "of another submitter")
    lost_cells = LostCells(tmp_path / "cells")
    lost_cells.add(cell, "why", "1_0")
    monkeypatch.setattr(claims, "LEASE_SECONDS", 10_000.0)
    for _ in range(3):
        assert lost_cells.record({cell.key}) == []
    monkeypatch.setattr(claims, "LEASE_SECONDS", 0.0)
    assert lost_cells.record({cell.key}) == [cell.key]
    assert lost_cells.record({cell.key}) == []


def test_a_cell_that_another_ends_is_left(tmp_path: Path) -> None:
    (cell,) = cells_of(tmp_path, 1)
    lost_cells = LostCells(tmp_path / "cells")
    lost_cells.add(cell, "why", "1_0")
    assert lost_cells.record(set()) == []
    assert not list((tmp_path / "cells").iterdir())


def test_deaths_are_counted_across_commands_until_the_cell_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "LEASE_SECONDS", 0.1)
    (cell,), scheduler, until = cells_of(tmp_path, 1), FakeScheduler(), [3]

    class KilledError(Exception):
        """The end of a command that cancels nothing."""

    def die() -> None:
        scheduler.running.clear()
        if len(scheduler.calls) == until[0]:
            raise KilledError

    def command() -> int:
        loop, before = SchedulerLoop(scheduler, [cell], RunOptions(tmp_path, 0)), len(scheduler.calls)
        loop.submit()
        assert loop.wait(Log()) == 1
        return len(scheduler.calls) - before

    scheduler.on_look = die
    with pytest.raises(KilledError):
        command()
    assert LaunchFile(tmp_path).deaths() == {cell.key: 2}
    until[0] = 0
    assert command() == 1, "its third death was the last"
    assert LaunchFile(tmp_path).deaths() == {cell.key: 0}
    assert command() == 3, "it has ended, and is counted anew"
