"""Workers that die: at work, between two jobs, again and again."""

import os
import signal
from pathlib import Path

import pytest
from pool_jobs import Log, jobs

from vcpo_bench.bench.running import pool


def children() -> list[int]:
    listed = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    return [int(pid) for pid in listed if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]


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
    ((_, status, _, reason),) = log.names("ended")
    assert status == "error"
    assert f"died {pool.MAX_DEATHS} times" in reason


def test_workers_take_the_gpus_in_turn() -> None:
    assert [pool.placed("cuda", position, 2) for position in range(3)] == ["cuda:0", "cuda:1", "cuda:0"]
    assert [pool.placed(asked, 1, 2) for asked in ("cpu", "cuda:0")] == ["cpu", "cuda:0"]
    assert pool.placed("cuda", 3, 1) == "cuda"
