"""Grids in the hands of a scheduler: what is submitted, what is watched, and what happens to jobs that go."""

import errno
import os
import time
from pathlib import Path

import pytest
from fake_scheduler import FakeScheduler, cells_of, end_cell
from pool_jobs import Log

from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.order import chains, waves
from vcpo_bench.bench.running.schedulers.loop import scheduler_loop
from vcpo_bench.bench.running.schedulers.loop.job import Job, run_job
from vcpo_bench.bench.running.schedulers.loop.launch_file import LaunchFile
from vcpo_bench.bench.running.schedulers.loop.results_watch import ResultsWatch
from vcpo_bench.bench.running.schedulers.loop.scheduler_loop import SchedulerLoop
from vcpo_bench.bench.running.schedulers.scheduled import detach_jobs, watch_jobs
from vcpo_bench.errors import DiskFullError, UsageError
from vcpo_bench.files import claims
from vcpo_bench.files.checksums import read_sealed
from vcpo_bench.files.claims import Claim


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "LEASE_SECONDS", 0.2)


def run_loop(scheduler: FakeScheduler, out: Path, cells: list, jobs: int = 0) -> tuple[int, Log]:
    log = Log()
    loop = SchedulerLoop(scheduler, cells, RunOptions(out, jobs))
    with loop.canceling_on_stop():
        loop.submit()
        return loop.wait(log), log


def test_the_folder_alone_says_what_was_done(tmp_path: Path) -> None:
    scheduler, cells = FakeScheduler(), cells_of(tmp_path, 3)

    def work() -> None:
        if scheduler.asked == 2:
            end_cell(tmp_path / "cells", cells[0])
            end_cell(tmp_path / "cells", cells[1], "error")
        if scheduler.asked == 3:
            end_cell(tmp_path / "cells", cells[2])
            scheduler.running.clear()

    scheduler.on_look = work
    failed, log = run_loop(scheduler, tmp_path, cells)
    assert failed == 1
    assert {event[1] for event in log.names("ended")} == {"completed", "error"}
    assert len(scheduler.calls) == 1
    assert (tmp_path / ".launch").is_dir(), "logs of a failed cell stay"


def test_progress_comes_from_claims(tmp_path: Path) -> None:
    (cell,) = cells_of(tmp_path, 1)
    log = Log()
    watch = ResultsWatch(tmp_path / "cells", [cell])
    with Claim(tmp_path / "cells" / f"{cell.key}.partial", job="1_0") as claim:
        watch.poll(log)
        claim.note = {"step": 2, "reward": 0.5, "ess": float("nan")}
        deadline = time.monotonic() + 5
        while not log.names("progress") and time.monotonic() < deadline:
            watch.poll(log)
        found = watch.claim(cell.key)
        assert found is not None
        assert found.job == "1_0"
    assert log.names("started") == [(cell.key, cell.config.label, 3)]
    assert log.names("progress")[0][:3] == (cell.key, 2, 0.5)


def test_a_job_that_dies_is_submitted_again_and_lost_after_three_deaths(tmp_path: Path) -> None:
    scheduler, cells = FakeScheduler(), cells_of(tmp_path, 1)
    scheduler.on_look = scheduler.running.clear
    failed, log = run_loop(scheduler, tmp_path, cells)
    assert failed == 1
    assert len(scheduler.calls) == 3
    ((_, status, _, reason),) = log.names("ended")
    assert (status, reason) == ("error", "its job ended early 3 times (NODE_FAIL)")
    assert "its job 1_0 ended early" in log.names("message")[0][0]


def test_a_canceled_job_is_no_failed_cell(tmp_path: Path) -> None:
    scheduler, cells = FakeScheduler(), cells_of(tmp_path, 2)

    def cancel_one() -> None:
        if scheduler.asked == 2:
            scheduler.cancel(["1_0"])
            end_cell(tmp_path / "cells", cells[1])

    scheduler.on_look = cancel_one
    failed, log = run_loop(scheduler, tmp_path, cells)
    assert failed == 1
    assert [path.name for path in (tmp_path / "cells").iterdir()] == [cells[1].key]
    assert "was canceled" in log.names("message")[0][0]


def test_a_second_parent_watches_the_jobs_of_the_first(tmp_path: Path) -> None:
    scheduler, cells = FakeScheduler(), cells_of(tmp_path, 4)
    SchedulerLoop(scheduler, cells, RunOptions(tmp_path, 0)).submit()
    del scheduler.running["1_3"]
    again = SchedulerLoop(scheduler, cells, RunOptions(tmp_path, 0))
    assert again.submit() == (1, 3, 0, 0)
    assert [len(call) for call in scheduler.calls] == [4, 1]
    assert scheduler.calls[1][0].keys == (cells[3].key,)


def test_a_cell_that_another_worker_has_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "LEASE_SECONDS", 60.0)
    monkeypatch.setattr(scheduler_loop, "SETTLE_SHARE", 0.0)
    scheduler, cells = FakeScheduler(), cells_of(tmp_path, 1)
    with Claim(tmp_path / "cells" / f"{cells[0].key}.partial", job="of another submitter") as claim:

        def work() -> None:
            scheduler.running.clear()
            if scheduler.asked == 30:
                claim.__exit__(None, None, None)
                end_cell(tmp_path / "cells", cells[0])

        scheduler.on_look = work
        failed, _ = run_loop(scheduler, tmp_path, cells)
    assert (failed, len(scheduler.calls)) == (0, 1)
    assert not (tmp_path / ".launch").exists()


class Told(BaseException):
    """As `interrupts.Stopped`."""


def test_told_to_stop_it_cancels_and_killed_it_does_not(tmp_path: Path) -> None:
    for problem, canceled in ((Told(), {"1_0"}), (OSError("as good as a kill"), set())):
        scheduler, cells = FakeScheduler(), cells_of(tmp_path / type(problem).__name__, 1)

        def stop(scheduler: FakeScheduler = scheduler, problem: BaseException = problem) -> None:
            if scheduler.asked == 2:
                raise problem

        scheduler.on_look = stop
        with pytest.raises(type(problem)):
            run_loop(scheduler, tmp_path / type(problem).__name__, cells)
        assert scheduler.canceled == canceled


def test_told_to_stop_as_soon_as_it_says_what_it_submitted_it_cancels(tmp_path: Path) -> None:
    scheduler, cells = FakeScheduler(), cells_of(tmp_path, 2)

    def stop(name: str, arguments: object) -> None:
        raise Told

    with pytest.raises(Told):
        watch_jobs("fake", scheduler, cells, RunOptions(tmp_path, 0), Log(stop))
    assert scheduler.canceled == {"1_0", "1_1"}


def test_a_full_disk_cancels_and_fails_no_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler, cells = FakeScheduler(), cells_of(tmp_path, 2)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def die() -> None:
        if scheduler.asked == 2:
            scheduler.running.pop("1_0")
            monkeypatch.setattr(os, "fsync", full)

    scheduler.on_look = die
    with pytest.raises(DiskFullError, match="the disk is full"):
        run_loop(scheduler, tmp_path, cells)
    assert "1_1" in scheduler.canceled
    assert not list((tmp_path / "cells").iterdir())


def test_cells_that_borrow_step_scales_follow_in_the_same_job(tmp_path: Path) -> None:
    scheduler, cells = FakeScheduler(), cells_of(tmp_path, 2, ("vcpo", "reinforce+lr-matched(to=vcpo)"))
    assert sorted(map(len, waves(cells))) == [2, 2]
    groups = chains(cells)
    assert [[cell.config.series for cell in group] for group in groups] == [["", group[0].key] for group in groups]
    SchedulerLoop(scheduler, cells, RunOptions(tmp_path, 0)).submit()
    assert [len(job.keys) for job in scheduler.calls[0]] == [2, 2]


def lender_with_an_earlier_job(out: Path) -> tuple[FakeScheduler, list, list]:
    """A folder whose lenders are with jobs when the cells that use their step scales are added."""
    scheduler, cells = FakeScheduler(), cells_of(out, 2, ("vcpo", "reinforce+lr-matched(to=vcpo)"))
    lenders, borrowers = waves(cells)
    SchedulerLoop(scheduler, lenders, RunOptions(out, 0)).submit()
    return scheduler, lenders, borrowers


def test_a_cell_is_held_back_while_an_earlier_job_has_its_lender(tmp_path: Path) -> None:
    scheduler, lenders, borrowers = lender_with_an_earlier_job(tmp_path)

    def work() -> None:
        if scheduler.asked == 4:
            end_cell(tmp_path / "cells", lenders[1])
        if len(scheduler.calls) == 2 and "2_0" in scheduler.running:
            assert scheduler.running.pop("2_0").keys == (borrowers[1].key,)
            end_cell(tmp_path / "cells", borrowers[1])
            end_cell(tmp_path / "cells", lenders[0])
        if len(scheduler.calls) == 3 and "3_0" in scheduler.running:
            assert scheduler.running.pop("3_0").keys == (borrowers[0].key,)
            end_cell(tmp_path / "cells", borrowers[0])

    scheduler.on_look = work
    failed, log = run_loop(scheduler, tmp_path, [*borrowers, *lenders])
    assert failed == 0
    assert [len(call) for call in scheduler.calls] == [2, 1, 1]
    assert len(log.names("ended")) == 4


def test_a_detached_command_says_what_it_holds_back(tmp_path: Path) -> None:
    scheduler, lenders, borrowers = lender_with_an_earlier_job(tmp_path)
    said = detach_jobs("fake", scheduler, [*lenders, *borrowers], RunOptions(tmp_path, 0))
    assert "0 cells submitted, 2 had jobs already; 2 not submitted, because they use step scales of cells" in said
    assert [len(call) for call in scheduler.calls] == [2]


def test_cells_held_back_for_a_canceled_one_are_left_as_well(tmp_path: Path) -> None:
    scheduler, lenders, borrowers = lender_with_an_earlier_job(tmp_path)

    def cancel() -> None:
        if scheduler.asked == 3:
            scheduler.cancel(["1_0", "1_1"])

    scheduler.on_look = cancel
    failed, log = run_loop(scheduler, tmp_path, [*lenders, *borrowers])
    assert failed == 4
    assert sum("the cell whose step scales it uses was canceled" in text for (text,) in log.names("message")) == 2
    assert len(scheduler.calls) == 1


def test_a_job_leaves_the_borrower_of_a_cell_that_another_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would be recorded as failed, because its lender has not ended."""
    lender, borrower = (wave[0] for wave in waves(cells_of(tmp_path, 1, ("vcpo", "reinforce+lr-matched(to=vcpo)"))))
    LaunchFile(tmp_path).add_cells(RunOptions(tmp_path, 0).cell_jobs([(lender,), (borrower,)]))
    with Claim(tmp_path / "cells" / f"{lender.key}.partial", job="of another"):
        assert run_job(Job(tmp_path, (lender.key, borrower.key)), "1_0") == 0
    assert "has it" in capsys.readouterr().out
    assert not (tmp_path / "cells" / borrower.key).exists()


def test_a_cell_that_fails_before_the_first_poll_does_not_run_again(tmp_path: Path) -> None:
    scheduler, cells = FakeScheduler(), cells_of(tmp_path, 2)
    end_cell(tmp_path / "cells", cells[0], "error")
    loop, log = SchedulerLoop(scheduler, cells, RunOptions(tmp_path, 0)), Log()
    loop.submit()
    for cell in cells:
        end_cell(tmp_path / "cells", cell, "error")
    scheduler.running.clear()
    assert loop.wait(log) == 2
    assert len(scheduler.calls) == 1


def test_what_a_job_reads_is_what_was_planned(tmp_path: Path) -> None:
    (cell,) = cells_of(tmp_path, 1)
    file, options = LaunchFile(tmp_path), RunOptions(tmp_path, 0, keep_every=5, plugins=(tmp_path / "p.py",))
    file.add_cells(options.cell_jobs([(cell,)]))
    file.record_handles({cell.key: "7_0"})
    assert file.cell_jobs([cell.key], None) == options.cell_jobs([(cell,)])
    assert file.handles() == {cell.key: "7_0"}
    with pytest.raises(UsageError, match="holds no such cell"):
        file.cell_jobs(["other"], None)
    read_sealed(tmp_path / ".launch" / "launch.json")


@pytest.mark.slow
def test_two_thousand_cells_are_one_submission_and_a_poll_is_quick(tmp_path: Path) -> None:
    """Wall-clock limits are generous: other work shares the machine."""
    cells, scheduler = cells_of(tmp_path, 2000), FakeScheduler()
    began = time.process_time()
    SchedulerLoop(scheduler, cells, RunOptions(tmp_path, 0)).submit()
    for cell in cells[:1000]:
        (tmp_path / "cells" / f"{cell.key}.partial").mkdir()
    watch = ResultsWatch(tmp_path / "cells", cells)
    watch.poll(Log())
    assert time.process_time() - began < 20.0
    assert [len(call) for call in scheduler.calls] == [2000]
    assert scheduler.asked == 1
    assert scheduler_loop.POLL_SECONDS >= 1.0


def test_a_cell_that_ends_before_the_first_poll_has_ended(tmp_path: Path) -> None:
    """Between the plan and the watch: on a cluster that takes a minute to answer, or with a quick job."""
    scheduler, cells = FakeScheduler(), cells_of(tmp_path, 2)
    loop, log = SchedulerLoop(scheduler, cells, RunOptions(tmp_path, 0)), Log()
    loop.submit()
    for cell in cells:
        end_cell(tmp_path / "cells", cell)
    scheduler.running.clear()
    assert loop.wait(log) == 0
    assert len(scheduler.calls) == 1
    assert {event[1] for event in log.names("ended")} == {"completed"}
    assert log.names("warned") == [("w",), ("w",)]
