"""Detached grids on this machine: the same bits, whatever happens to the command and to its background process."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fake_scheduler import cells_of
from launched_grids import digest, ended, finish, half_way, read_until, start, wait_for
from patience import within
from pool_jobs import Log

from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.schedulers import local
from vcpo_bench.bench.running.schedulers.detached import DetachedFiles, DetachedPool
from vcpo_bench.bench.running.schedulers.local import Local
from vcpo_bench.bench.running.schedulers.loop.job import Job
from vcpo_bench.bench.running.schedulers.loop.launch_file import LaunchFile
from vcpo_bench.errors import UsageError
from vcpo_bench.files.claims import Claim, claimed

GRID = ("--jobs", "2")


def process_of(out: Path) -> tuple[str, int]:
    """Name and process number of the background process."""
    (name,) = set(LaunchFile(out).handles().values())
    wait_for("it is at work", lambda: claimed(DetachedFiles(out, name).claim))
    found = claimed(DetachedFiles(out, name).claim)
    assert found is not None
    return name, found.holder.pid


@pytest.mark.slow
def test_the_command_killed_then_its_background_process(tmp_path: Path) -> None:
    out, plain = tmp_path / "run", tmp_path / "plain"
    finish(start(plain, *GRID))
    assert "2 cells submitted" in finish(start(out, *GRID, "--detach"))
    first = start(out, *GRID)
    wait_for("a cell is half-way", lambda: half_way(out))
    first.kill()
    first.communicate()
    os.kill(process_of(out)[1], signal.SIGKILL)
    printed = finish(start(out, *GRID))
    assert "2 of 2 cells done" in printed
    assert digest(out) == digest(plain)


@pytest.mark.slow
def test_attached_then_the_background_process_killed_then_canceled(tmp_path: Path) -> None:
    out = tmp_path / "run"
    finish(start(out, *GRID, "--detach", steps=5000))
    second = finish(start(out, *GRID, "--detach", steps=5000))
    assert "0 cells submitted, 2 had jobs already" in second
    parent = start(out, *GRID, steps=5000)
    read_until(parent, "2 with earlier jobs")
    wait_for("a cell is half-way", lambda: half_way(out))
    name, pid = process_of(out)
    os.kill(pid, signal.SIGKILL)
    wait_for("another one is started", lambda: name not in LaunchFile(out).handles().values())
    name, pid = process_of(out)
    parent.send_signal(signal.SIGINT)
    assert "interrupted" in finish(parent, code=130)
    wait_for("it has ended", lambda: not Path(f"/proc/{pid}").exists())
    assert DetachedFiles(out, name).ending.read_text() == "canceled"
    assert not ended(out)


def test_a_background_process_that_cannot_start_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(UsageError, match="the background process did not start"):
        list(DetachedPool(RunOptions(tmp_path, 1)).submit([Job(tmp_path, ("key",))], 1))


@pytest.mark.slow
def test_a_command_killed_as_its_background_process_starts(tmp_path: Path) -> None:
    """The process comes up beside the one of the next command, and must not run the same cells."""
    cells = cells_of(tmp_path, 1, steps=5000)
    options = RunOptions(tmp_path, 1)
    LaunchFile(tmp_path).add_cells(options.cell_jobs([tuple(cells)]))
    (name,) = next(DetachedPool(options).submit([Job(tmp_path, (cells[0].key,))], 1))
    LaunchFile(tmp_path).record_handles({cells[0].key: name})
    assert DetachedPool(options).alive({name}) == set()
    assert DetachedPool(options).orphans({name}) == {name}
    DetachedPool(options).cancel({name})
    assert DetachedPool(options).orphans({name}) == set()
    command = [sys.executable, "-m", "vcpo_bench", "run-detached", "--out", str(tmp_path), "--name", name]
    subprocess.run(command, timeout=within(200), check=False)
    assert DetachedFiles(tmp_path, name).ending.read_text() == "canceled"
    assert not ended(tmp_path)


def test_a_pool_of_this_machine_stops_a_background_process_that_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cell,) = cells_of(tmp_path, 1)
    options = RunOptions(tmp_path, 1)
    (name,) = next(DetachedPool(options).submit([Job(tmp_path, (cell.key,))], 1))
    LaunchFile(tmp_path).record_handles({cell.key: name})
    told: list[bool] = []
    files = DetachedFiles(tmp_path, name)
    monkeypatch.setattr(local, "run_here", lambda *_: told.append(files.cancel.exists()) or 1)
    assert Local().run([cell], options, Log()) == 1
    assert told == [True]


NAME = "0123456789ab"


def test_what_is_alive_how_it_ended_and_what_is_tidied(tmp_path: Path) -> None:
    (cell,) = cells_of(tmp_path, 1)
    options, files = RunOptions(tmp_path, 1), DetachedFiles(tmp_path, NAME)
    LaunchFile(tmp_path).record_handles({cell.key: NAME, "another": "17_0"})
    files.claim.mkdir(parents=True)
    assert not DetachedPool(options).owns([NAME])
    files.task.touch()
    assert DetachedPool(options).owns([NAME])
    with Claim(files.claim):
        assert DetachedPool(options).alive({NAME, "17_0"}) == {NAME}
    assert DetachedPool(options).alive({NAME}) == set()
    assert DetachedPool(options).result(NAME).canceled is False
    for said in ("canceled", "the disk is full"):
        files.ending.write_text(said)
        result = DetachedPool(options).result(NAME)
        assert (result.canceled, result.reason) == (said == "canceled", said)

    Local().run([], options, None)  # type: ignore[arg-type]  # without a cell, nothing happens
    assert files.task.exists(), "a job of Slurm may still need the folder"
    LaunchFile(tmp_path).record_handles({"another": NAME})
    Local().run([], options, None)  # type: ignore[arg-type]
    assert not (tmp_path / ".launch").exists()
