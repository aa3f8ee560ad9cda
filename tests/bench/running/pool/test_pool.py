"""Workers that die: at work, between two jobs, again and again."""

import os
import signal
from pathlib import Path

import pytest
from pool_jobs import Log, children, jobs

from vcpo_bench.bench.running.pool import heartbeat, pool
from vcpo_bench.bench.running.pool.pool import WorkerExit
from vcpo_bench.bench.running.pool.worker import worker_device
from vcpo_bench.files.checksums import verify_sealed
from vcpo_bench.records import CELL_FILE, PARTIAL_SUFFIX


@pytest.mark.slow
def test_a_worker_killed_between_two_jobs_costs_nothing(tmp_path: Path) -> None:
    def kill_once(name: str, arguments: tuple) -> None:
        if name == "ended" and len(log.names("ended")) == 1:
            for pid in children():
                os.kill(pid, signal.SIGKILL)
                os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)

    log = Log(kill_once)
    assert pool.run_jobs(jobs(tmp_path, 2), 1, log) == 0
    assert [event[1] for event in log.names("ended")] == ["completed", "completed"]
    assert len(log.names("message")) == 1
    assert "SIGKILL" in log.names("message")[0][0]


@pytest.mark.slow
def test_a_cell_whose_worker_always_dies_is_given_up(tmp_path: Path) -> None:
    def kill_always(name: str, arguments: tuple) -> None:
        if name == "started":
            for pid in children():
                os.kill(pid, signal.SIGKILL)

    log = Log(kill_always)
    assert pool.run_jobs(jobs(tmp_path, 1), 1, log) == 1
    ((key, status, _, reason),) = log.names("ended")
    assert status == "error"
    assert f"died {pool.MAX_DEATHS} times (SIGKILL); most likely the machine ran out of memory" in reason
    folder = tmp_path / "cells" / key

    facts = verify_sealed(folder / CELL_FILE)
    assert (facts["status"], facts["reason"], facts["steps_done"]) == ("error", reason, 0)
    assert not folder.with_name(f"{key}{PARTIAL_SUFFIX}").exists()


@pytest.mark.slow
def test_a_worker_that_stops_is_named_then_killed_and_its_cell_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "QUIET_SECONDS", 1.0)
    monkeypatch.setattr(heartbeat, "HANG_SECONDS", 60.0)

    def stop_once(name: str, arguments: tuple) -> None:
        if name == "started" and len(log.names("started")) == 1:
            monkeypatch.setattr(heartbeat, "QUIET_SECONDS", 0.5)
            for pid in children():
                os.kill(pid, signal.SIGSTOP)
            pool_worker_limit(2.0)

    def pool_worker_limit(seconds: float) -> None:
        for beat in made:
            beat.limit = seconds

    made: list[heartbeat.Heartbeat] = []

    def remembered(*arguments) -> heartbeat.Heartbeat:
        made.append(heartbeat.Heartbeat(*arguments))
        return made[-1]

    monkeypatch.setattr(pool, "Heartbeat", remembered)
    log = Log(stop_once)
    assert pool.run_jobs(jobs(tmp_path, 1), 1, log) == 0
    texts = [text for (text,) in log.names("message")]
    assert any("no heartbeat for 0.5 s (process " in text and "after 2 s it is killed" in text for text in texts), texts
    assert any("its worker died (no heartbeat for 2 s); resuming from its checkpoint" in text for text in texts), texts
    assert [event[1] for event in log.names("ended")] == ["completed"]


def test_workers_take_the_gpus_in_turn() -> None:
    assert [worker_device("cuda", position, 2) for position in range(3)] == ["cuda:0", "cuda:1", "cuda:0"]
    assert [worker_device(asked, 1, 2) for asked in ("cpu", "cuda:0")] == ["cpu", "cuda:0"]
    assert worker_device("cuda", 3, 1) == "cuda"


def test_the_cause_of_a_death_in_words() -> None:
    assert WorkerExit(-9).cause == "SIGKILL"
    assert "out of memory" in WorkerExit(-9).advice
    assert (WorkerExit(-11).cause, WorkerExit(-11).advice) == ("SIGSEGV", "")
    assert WorkerExit(3).cause == "exit code 3"
    assert WorkerExit(1, "Traceback ...\nOSError: [Errno 5] Input/output error\n").cause == (
        "OSError: [Errno 5] Input/output error"
    )
    hung = WorkerExit(-9, silent=1800.0)
    assert (hung.cause, hung.advice) == ("no heartbeat for 1800 s", "")


def test_a_heartbeat_is_missed_once_and_hung_only_after_the_limit(tmp_path: Path) -> None:
    (job,) = jobs(tmp_path, 1)
    beat = heartbeat.Heartbeat(job.label, False, 0.0)
    assert beat.complaint(60.0, 7) == ""
    assert "no heartbeat for 60 s (process 7)" in beat.complaint(60.1, 7)
    assert beat.complaint(61.0, 7) == ""
    beat.hear(100.0)
    assert not beat.hung(1900.0)
    assert beat.hung(1900.1)
    assert beat.complaint(170.0, 7)
    beat.pause()  # it waits for the lock of its cell
    assert not beat.hung(1e6)
    assert beat.complaint(1e6, 7) == ""
    beat.hear(1e6)
    assert beat.hung(1e6 + 1801)


def test_silence_is_judged_by_the_pace_of_the_cell() -> None:
    beat = heartbeat.Heartbeat("a language model", True, 0.0)
    assert beat.limit == 18000
    assert beat.complaint(599.0, 7) == ""  # it loads
    beat.hear(100.0)
    beat.hear(190.0)  # evaluation and first update
    beat.hear(200.0)
    assert beat.complaint(200 + 359, 7) == ""
    assert "no heartbeat for 360 s" in beat.complaint(200 + 361, 7)


def test_time_during_which_the_grid_itself_was_stopped_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([0.0, 1.0, 5000.0, 5001.0])
    monkeypatch.setattr(heartbeat.time, "monotonic", lambda: next(now))
    clock = heartbeat.RunningClock()
    assert [clock.now() for _ in range(3)] == [1.0, 1.0, 2.0]
