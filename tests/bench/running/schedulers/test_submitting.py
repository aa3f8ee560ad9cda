"""Submissions that are cut short: no job is lost, and none runs that nobody knows of."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_scheduler import FakeScheduler, cells_of, end_cell
from pool_jobs import Log

from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.schedulers.loop import scheduler_loop
from vcpo_bench.bench.running.schedulers.loop.launch_file import LaunchFile
from vcpo_bench.bench.running.schedulers.loop.scheduler_loop import SchedulerLoop
from vcpo_bench.bench.running.schedulers.scheduled import detach_jobs, watch_jobs
from vcpo_bench.errors import UsageError
from vcpo_bench.files import claims


class Told(BaseException):
    """As `interrupts.Stopped`."""


INSTANTS = ("before 0", "taken 0", "noted 0", "before 1", "taken 1", "noted 1")
COMMANDS: dict[str, Callable[[FakeScheduler, list[PlannedCell], Path], object]] = {
    "watched": lambda scheduler, cells, out: watch_jobs("fake", scheduler, cells, RunOptions(out, 0), Log()),
    "detached": lambda scheduler, cells, out: detach_jobs("fake", scheduler, cells, RunOptions(out, 0)),
}


def cut(
    scheduler: FakeScheduler, instant: str, problem: BaseException, patch: pytest.MonkeyPatch, killed: bool = False
) -> None:
    """Have a submission end at an instant: `noted N` is when the handles of array N have just been written down."""
    noted: list[int] = []
    original = LaunchFile.record_handles

    def end_at(now: str) -> None:
        if now == instant:
            scheduler.unreachable = killed
            raise problem

    def submitted(file: LaunchFile, handles: dict[str, str]) -> None:
        original(file, handles)
        noted.append(1)
        end_at(f"noted {len(noted) - 1}")

    scheduler.on_instant = end_at
    patch.setattr(LaunchFile, "record_handles", submitted)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("instant", INSTANTS)
@pytest.mark.parametrize("problem", [Told(), UsageError("sbatch: error: Socket timed out on send/recv operation")])
def test_a_submission_that_is_stopped_or_fails_leaves_no_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, instant: str, problem: BaseException
) -> None:
    """An error after an array was taken is a controller that took it, and whose answer came too late."""
    scheduler, cells = FakeScheduler(array=2), cells_of(tmp_path, 4)
    with monkeypatch.context() as patch, pytest.raises(type(problem)):
        cut(scheduler, instant, problem, patch)
        COMMANDS[command](scheduler, cells, tmp_path)
    assert not scheduler.running


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("instant", INSTANTS)
@pytest.mark.parametrize("names_first", [False, True])
def test_after_a_kill_the_same_command_has_one_job_per_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, instant: str, names_first: bool
) -> None:
    scheduler, cells = FakeScheduler(array=2, names_first=names_first), cells_of(tmp_path, 4)
    with monkeypatch.context() as patch, pytest.raises(Told):
        cut(scheduler, instant, Told(), patch, killed=True)
        COMMANDS[command](scheduler, cells, tmp_path)
    scheduler.on_instant, scheduler.unreachable = lambda instant: None, False
    living = set(scheduler.running)
    again = SchedulerLoop(scheduler, cells, RunOptions(tmp_path, 0))
    submission = again.submit()
    keys = Counter(key for job in scheduler.running.values() for key in job.keys)
    assert keys == dict.fromkeys((cell.key for cell in cells), 1)
    known = LaunchFile(tmp_path).handles()
    assert set(known.values()) == scheduler.running.keys()
    assert submission.orphans == len(living - set(known.values()))


def test_jobs_of_other_cells_of_the_folder_are_no_orphans(tmp_path: Path) -> None:
    scheduler, cells = FakeScheduler(), cells_of(tmp_path, 4)
    SchedulerLoop(scheduler, cells[:2], RunOptions(tmp_path, 0)).submit()
    SchedulerLoop(scheduler, cells[2:], RunOptions(tmp_path, 0)).submit()
    assert len(scheduler.running) == 4
    assert not scheduler.canceled


def test_a_command_that_detaches_cancels_only_what_it_submitted(tmp_path: Path) -> None:
    """Jobs of an earlier command have run for hours, maybe."""
    scheduler, cells = FakeScheduler(), cells_of(tmp_path, 4)
    SchedulerLoop(scheduler, cells[:2], RunOptions(tmp_path, 0)).submit()

    def stop(done: bool) -> None:
        raise Told

    loop = SchedulerLoop(scheduler, cells, RunOptions(tmp_path, 0))
    with pytest.raises(Told), loop.canceling_on_stop(only_own=True):
        loop.submit()
        stop(done=False)
    assert scheduler.canceled == {"2_0", "2_1"}


def test_a_job_that_was_wrongly_taken_for_gone_is_canceled_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster that did not answer for a while: the first job goes on beside the second one."""
    monkeypatch.setattr(claims, "LEASE_SECONDS", 0.1)
    scheduler, cells = FakeScheduler(), cells_of(tmp_path, 1)
    hidden = {}

    def look() -> None:
        if not hidden:
            hidden.update(scheduler.running)
            scheduler.running.clear()
        if len(scheduler.calls) == 2:
            scheduler.running |= hidden
            raise Told

    with pytest.raises(Told):
        SchedulerLoop(scheduler, cells, RunOptions(tmp_path, 0)).submit()
        scheduler.on_look = look
        watch_jobs("fake", scheduler, cells, RunOptions(tmp_path, 0), Log())
    assert not scheduler.running
    assert scheduler.canceled == {"1_0", "2_0"}


def test_a_second_parent_cancels_what_the_first_replaced(tmp_path: Path) -> None:
    scheduler, cells = FakeScheduler(), cells_of(tmp_path, 1)
    file = LaunchFile(tmp_path)
    file.record_handles({cells[0].key: "k:1"})
    file.record_handles({cells[0].key: "k:2"})
    file.record_handles({cells[0].key: "k:2"})
    assert file.replaced() == {"k:1": cells[0].key}
    scheduler.running["k:2"] = None  # type: ignore[assignment]
    SchedulerLoop(scheduler, cells, RunOptions(tmp_path, 0)).submit()
    assert scheduler.canceled == {"k:1"}
    end_cell(tmp_path / "cells", cells[0])


def test_why_no_job_starts_is_said_once_per_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler_loop, "START_SECONDS", 0.0)
    scheduler, cells = FakeScheduler(), cells_of(tmp_path, 2)
    log = Log()

    def look() -> None:
        scheduler.why = {2: "busy", 4: "held"}.get(scheduler.asked, scheduler.why)
        if scheduler.asked == 6:
            end_cell(tmp_path / "cells", cells[0])
        if scheduler.asked == 8:
            scheduler.why = "has begun"
        if scheduler.asked == 10:
            end_cell(tmp_path / "cells", cells[1])

    scheduler.on_look = look
    watch_jobs("fake", scheduler, cells, RunOptions(tmp_path, 0), log)
    said = [text for (text,) in log.names("message")][1:]
    assert said == ["no job has started for 0 s; busy (2)", "no job has started for 0 s; held (2)"]
