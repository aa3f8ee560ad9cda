"""Grids on a real Slurm: the same bits as on one machine, whatever happens to jobs, nodes and parents."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from launched_grids import (
    GRID,
    digest,
    ended,
    finish,
    half_way,
    living_workers,
    newest_checkpoints,
    read_until,
    send,
    start,
    wait_for,
    worker_of,
    workers_of,
)
from patience import within
from slurm_cluster import SlurmCluster

pytest.importorskip("submitit", reason="runs in .ci/integrations slurm")
POLL_SECONDS = 1
SLURM = ("--launcher", f"slurm(minutes=30,memory=0.5,poll={POLL_SECONDS})")
BRIEF = ("--launcher", "slurm(minutes=5,memory=0.5,poll=1)")


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    out = tmp_path_factory.mktemp("local") / "run"
    finish(start(out, "--jobs", "2"))
    return digest(out)


def test_parent_killed_worker_killed_and_requeued_mid_cell(
    cluster: SlurmCluster, tmp_path: Path, expected: dict[str, str]
) -> None:
    out = tmp_path / "run"
    first = start(out, *SLURM)
    wait_for("a cell is half-way", lambda: half_way(out))
    first.kill()
    first.wait()
    workers = workers_of(out)
    send(signal.SIGSTOP, workers)  # no cell ends while the second parent starts, however slow this machine is
    second = start(out, *SLURM)
    read_until(second, "with earlier jobs")
    cluster.ask("scontrol", "requeue", cluster.jobs()[0])
    send(signal.SIGKILL, workers[:1])
    send(signal.SIGCONT, workers)
    cluster.hurry()
    finish(second)
    assert digest(out) == expected
    assert not (out / ".launch").exists()


def reach_the_time_limit(cluster: SlurmCluster, out: Path) -> None:
    """What Slurm sends some time before a job's limit; under ten minutes, submitit takes every signal for that one."""
    workers = workers_of(out)
    send(signal.SIGSTOP, workers)  # no cell ends before its job is told
    for job in cluster.jobs("RUNNING"):
        cluster.ask("scancel", "--signal=USR2", job)
    send(signal.SIGCONT, workers)
    wait_for("the workers have ended", lambda: not {*workers} & {*living_workers(out)})


def have_gone_on(out: Path, before: dict[str, int]) -> bool:
    """Whether both cells have ended or have a checkpoint later than before."""
    now = newest_checkpoints(out)
    return len(ended(out)) + sum(update > before.get(key, -1) for key, update in now.items()) == 2


def test_the_time_limit_reached_twice_with_progress(
    cluster: SlurmCluster, tmp_path: Path, expected: dict[str, str]
) -> None:
    """The jobs are queued again, and their cells resume."""
    out = tmp_path / "run"
    process = start(out, *BRIEF)
    wait_for("a cell is half-way", lambda: half_way(out))
    reach_the_time_limit(cluster, out)
    before = newest_checkpoints(out)
    cluster.hurry()
    wait_for("both cells have gone on", lambda: have_gone_on(out, before))
    reach_the_time_limit(cluster, out)
    cluster.hurry()
    assert "ended early" not in finish(process)
    assert digest(out) == expected


def test_the_time_limit_reached_twice_without_progress_ends_the_cell(cluster: SlurmCluster, tmp_path: Path) -> None:
    """Queued again for ever, it would use the cluster in vain."""
    out = tmp_path / "run"
    process = start(out, *BRIEF, steps=100_000, checkpoint_seconds=100_000)
    for _ in range(2):
        wait_for("both cells are at work", lambda: len(living_workers(out)) == 2)
        reach_the_time_limit(cluster, out)
        if not ended(out):
            cluster.hurry()
    printed = finish(process, code=1)
    assert "two time limits of 5 minutes were reached without a new checkpoint" in printed
    assert len(ended(out)) == 2
    assert not cluster.jobs()


def test_a_lost_node(cluster: SlurmCluster, tmp_path: Path, expected: dict[str, str]) -> None:
    out = tmp_path / "run"
    process = start(out, *SLURM)
    wait_for("a cell is half-way", lambda: half_way(out))
    cluster.lose_node(workers_of(out))
    cluster.start_node()
    cluster.hurry()
    finish(process)
    assert digest(out) == expected


def test_detached_then_attached_then_refused_twice_then_canceled(cluster: SlurmCluster, tmp_path: Path) -> None:
    out = tmp_path / "run"
    printed = finish(start(out, *SLURM, "--detach", steps=5000))
    assert "2 cells submitted" in printed
    wait_for("a cell is half-way", lambda: half_way(out))
    parent = start(out, *SLURM, steps=5000)
    read_until(parent, "2 with earlier jobs")
    assert "another run (process" in finish(start(out, *SLURM, steps=5000), code=2)
    left = hand_run(out)
    assert left.returncode == 0
    assert f"process {worker_of(out)} has it" in left.stdout
    parent.send_signal(signal.SIGINT)
    assert "interrupted" in finish(parent, code=130)
    wait_for("no job is left", lambda: not cluster.jobs())
    assert not ended(out)


def hand_run(out: Path) -> subprocess.CompletedProcess[str]:
    """A job script written by hand, for a cell that a job has."""
    key = half_way(out)[0].parent.name.removesuffix(".partial")
    command = [sys.executable, "-m", "vcpo_bench", "run-cell", "--out", str(out), "--key", key]
    return subprocess.run(command, capture_output=True, text=True, timeout=within(300))


def test_canceled_by_hand_is_not_failed(cluster: SlurmCluster, tmp_path: Path) -> None:
    out = tmp_path / "run"
    process = start(out, *SLURM, "--jobs", "1", steps=5000)
    wait_for("a cell is half-way", lambda: half_way(out))
    assert len(cluster.jobs("RUNNING")) == 1
    cluster.ask("scancel", *cluster.jobs())
    assert finish(process, code=1).count("its job was canceled") == 2
    assert not ended(out)


def test_what_sbatch_refuses_is_one_line(cluster: SlurmCluster, tmp_path: Path) -> None:
    printed = finish(start(tmp_path / "run", "--launcher", "slurm(partition=nowhere)"), code=2)
    (line,) = [line for line in printed.splitlines() if line.startswith("error")]
    assert "sbatch refused" in line
    assert "invalid partition" in line.lower()


@pytest.fixture
def questions(cluster: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with a line for every call of `squeue`: its arguments."""
    real, log = shutil.which("squeue", path=cluster.environment["PATH"]), tmp_path / "questions"
    log.touch()
    script = tmp_path / "bin" / "squeue"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec {real} "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:{os.environ['PATH']}")
    return log


def test_two_thousand_cells_do_not_flood_the_controller(cluster: SlurmCluster, tmp_path: Path, questions: Path) -> None:
    """Two arrays, one question per look, whatever the number of jobs, and no more cells at once than asked for."""
    out = tmp_path / "run"
    command = [sys.executable, "-m", "vcpo_bench", "run", *GRID[:-5], "--seeds", "1000", "--task", "walk-eos"]
    more = ["--no-controls", "--steps", "1000", "--out", str(out), *SLURM, "--jobs", "1"]
    done = subprocess.run([*command, *more, "--detach"], capture_output=True, text=True, timeout=within(400))
    assert "2000 cells submitted" in done.stdout, done.stderr
    asked = questions.read_text().splitlines()
    assert len(asked) == 2, "one for jobs that nobody knows, one for those that fill --jobs already"
    jobs = cluster.jobs()
    assert len(jobs) == 2000
    assert len({job.partition("_")[0] for job in jobs}) == 2
    wait_for("a cell is half-way", lambda: half_way(out))
    assert len(cluster.jobs("RUNNING")) == 1
    began, before = time.monotonic(), len(questions.read_text().splitlines())
    with subprocess.Popen([*command, *more], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as watcher:
        read_until(watcher, "2000 with earlier jobs")
        wait_for("it has looked again", lambda: len(questions.read_text().splitlines()) >= before + 5)
        asked = questions.read_text().splitlines()[before:]
        assert len(asked) <= 3 + (time.monotonic() - began) / POLL_SECONDS
        assert len(set(asked)) == 1, "the same question for all jobs"
        watcher.terminate()
        finish(watcher, code=143)
    wait_for("no job is left", lambda: not cluster.jobs())
