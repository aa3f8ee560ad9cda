"""A full disk stops the grid with one line that names the folder: no retries, no tracebacks, nothing lost."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import call
from patience import within

GRID = ["--methods", "clip", "--staleness", "1", "--seeds", "2", "--task", "walk-eos", "--steps", "6", "--jobs", "2"]
SMALL = ["--prompts", "2", "--responses", "4", "--no-controls", "--quiet"]
FULL = """
import errno
from pathlib import Path
from vcpo_bench.bench.cells.cell_store import CellStore

real = CellStore.{what}
def full(self, *arguments, **named):
    if Path({marker!r}).exists():
        raise OSError(errno.ENOSPC, "No space left on device")
    return real(self, *arguments, **named)
CellStore.{what} = full
"""
"""The end of a plug-in: every process that loads it finds no space as long as there is a marker."""


def run(out: Path, *more: str) -> tuple[int, list[str]]:
    """Exit code and error lines of the command, checkpointing at every update."""
    environment = {**os.environ, "VCPO_BENCH_CHECKPOINT_SECONDS": "0"}
    command = [sys.executable, "-m", "vcpo_bench", "run", *GRID, *SMALL, "--out", str(out), *more]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=within(120), check=False)
    return done.returncode, done.stderr.splitlines()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of half a mebibyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting takes root, as CI has it; tests/files/test_disk_space.py does without a small disk")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.slow
def test_a_small_disk(small_disk: Path) -> None:
    code, lines = run(small_disk / "run")
    assert code == 2
    (line,) = lines
    assert line.startswith("error: ")
    assert f"{small_disk}/run" in line
    assert "the disk is full; free space there, then run the same command again" in line


@pytest.mark.slow
@pytest.mark.parametrize("what", ["checkpoint", "finish"])
def test_the_same_command_resumes_once_there_is_space(tmp_path: Path, what: str) -> None:
    marker, plugin, out = tmp_path / "full", tmp_path / "any_method.py", tmp_path / "run"
    marker.touch()
    assert call("new", "method", "any-method", "--folder", str(tmp_path)).exit_code == 0
    plugin.write_text(plugin.read_text() + FULL.format(what=what, marker=str(marker)))
    code, (line,) = run(out, "--plugin", str(plugin))
    assert code == 2
    assert str(out) in line
    assert not list((out / "cells").glob("*/cell.json"))
    marker.unlink()
    assert run(out, "--plugin", str(plugin)) == (0, [])
    assert len(list((out / "cells").glob("*/cell.json"))) == 2
