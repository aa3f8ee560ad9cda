"""Grids killed at random instants lose no ended cell and change no bit. More instants: `KILLS=30 pytest ...`.

Every update ends with a checkpoint, so that what follows a kill begins in the middle of a cell.
"""

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from patience import within

KILLS = int(os.environ.get("KILLS", "3"))
GRID = ["--methods", "vcpo,clip", "--staleness", "2", "--seeds", "1", "--task", "walk-eos", "--steps", "40"]
SMALL = ["--prompts", "4", "--responses", "4", "--quiet", "--keep-checkpoints", "every=20"]


def start(out: Path, jobs: int = 2) -> subprocess.Popen[bytes]:
    """The command in a process group of its own, with a checkpoint at every update."""
    environment = {**os.environ, "VCPO_BENCH_CHECKPOINT_SECONDS": "0"}
    arguments = [sys.executable, "-m", "vcpo_bench", "run", *GRID, *SMALL, "--jobs", str(jobs), "--out", str(out)]
    return subprocess.Popen(
        arguments,
        env=environment,
        start_new_session=True,
        # a shell that runs us in the background has interrupts ignored, and children inherit that
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def digest(out: Path) -> dict[str, str]:
    """Hash of every number of every ended cell, wall-clock times aside, and of the kept weights."""
    found = {}
    for path in sorted((out / "cells").glob("*/*.parquet")) + sorted((out / "cells").glob("*/checkpoints/*/*.parquet")):
        table = pq.read_table(path)
        columns = [name for name in table.column_names if not name.startswith("seconds")]
        found[str(path.relative_to(out))] = repr(table.select(columns).to_pydict())
    for path in sorted((out / "cells").glob("*/checkpoints/*/state.safetensors")):
        found[str(path.relative_to(out))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    out = tmp_path_factory.mktemp("undisturbed") / "run"
    process = start(out)
    _, errors = process.communicate(timeout=within(300))
    assert process.returncode == 0, errors.decode()
    return digest(out)


def workers_of(process: subprocess.Popen[bytes]) -> list[int]:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="finds the workers through /proc")
def test_a_killed_grid_ends_with_the_same_bits(tmp_path: Path, undisturbed: dict[str, str]) -> None:
    expected = undisturbed
    chance = random.Random(KILLS)
    landed = half_way = 0
    for number in range(KILLS):
        out = tmp_path / f"run{number}"
        process = start(out)
        at_work(out, process)
        time.sleep(chance.uniform(0.0, 1.0))
        landed += process.poll() is None
        kill(process, ("parent", "all", "worker")[number % 3], chance)
        process.communicate(timeout=within(300))
        ended = written(out)
        half_way += bool(list(out.glob("cells/*.partial/checkpoint-*[1-9]*")))
        finish(out, expected)
        assert {path: when for path, when in written(out).items() if path in ended} == ended, (
            "an ended cell was touched"
        )
    assert landed >= (KILLS + 1) // 2, "most kills came too late to test anything"
    assert half_way >= KILLS // 3, "most grids resumed from the start, or had ended"


def at_work(out: Path, process: subprocess.Popen[bytes]) -> None:
    """Wait until a worker has made its first checkpoint."""
    deadline = time.monotonic() + within(120)
    while not list(out.glob("cells/*.partial/checkpoint-*")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)


def written(out: Path) -> dict[Path, int]:
    """When the files of the ended cells were written."""
    ended = [folder for folder in (out / "cells").glob("*") if not folder.name.endswith(".partial")]
    return {path: path.stat().st_mtime_ns for folder in ended for path in folder.glob("*.*")}


def finish(out: Path, expected: dict[str, str]) -> None:
    process = start(out)
    _, errors = process.communicate(timeout=within(300))
    assert process.returncode == 0, errors.decode()
    assert digest(out) == expected


def kill(process: subprocess.Popen[bytes], victim: str, chance: random.Random) -> None:
    if process.poll() is not None:
        return
    if victim == "worker":
        workers = workers_of(process)
        if workers:
            os.kill(chance.choice(workers), signal.SIGKILL)
        return
    if victim == "all":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def test_ctrl_c_is_one_line_and_130(tmp_path: Path) -> None:
    process = start(tmp_path / "run", jobs=1)
    at_work(tmp_path / "run", process)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=within(60))
    assert process.returncode == 130
    lines = [line for line in errors.decode().splitlines() if line]
    assert len(lines) == 1, lines
    assert lines[0].startswith("interrupted")
