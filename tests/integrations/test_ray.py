"""Grids on Ray: the same bits as on one machine, whatever happens to workers, nodes and parents."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from launched_grids import digest, ended, finish, half_way, start, wait_for, worker_of

ray = pytest.importorskip("ray")


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    out = tmp_path_factory.mktemp("local") / "run"
    finish(start(out, "--jobs", "2"))
    return digest(out)


@pytest.fixture(scope="module")
def head() -> Iterator[str]:
    """A cluster whose head runs no cells, so that a node can be lost."""
    port = "6399"
    flags = ["--head", f"--port={port}", "--num-cpus=0", "--include-dashboard=false", "--object-store-memory=80000000"]
    command("start", *flags)
    try:
        yield f"127.0.0.1:{port}"
    finally:
        command("stop", "--force")


def command(*arguments: str) -> None:
    program = str(Path(sys.executable).with_name("ray"))
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "1"}
    subprocess.run([program, *arguments], env=environment, check=True, capture_output=True, timeout=200)


def add_node(address: str) -> set[int]:
    """Add a node; returns the process of its raylet."""
    before = raylets()
    flags = ["--num-cpus=2", "--object-store-memory=80000000"]
    command("start", f"--address={address}", *flags)
    return raylets() - before


def raylets() -> set[int]:
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            program = path.read_bytes().split(b"\0")[0]
        except OSError:
            continue
        if program.endswith(b"/raylet"):
            found.add(int(path.parent.name))
    return found


def on(address: str) -> tuple[str, ...]:
    return ("--launcher", f"ray(address={address})")


def test_a_cluster_of_its_own_and_a_killed_worker(tmp_path: Path, expected: dict[str, str]) -> None:
    out = tmp_path / "run"
    process = start(out, *on("local"), "--jobs", "2")
    wait_for("a cell is half-way", lambda: half_way(out))
    os.kill(worker_of(out), signal.SIGKILL)
    assert "2 cells submitted" in finish(process)
    assert digest(out) == expected
    assert not (out / ".launch").exists()


def test_a_killed_raylet_and_a_killed_parent(head: str, tmp_path: Path, expected: dict[str, str]) -> None:
    out = tmp_path / "run"
    first_node = add_node(head)
    first = start(out, *on(head))
    wait_for("a cell is half-way", lambda: half_way(out))
    first.kill()
    first.wait()
    done = max(int(path.name.rpartition("-")[2]) for path in half_way(out))
    wait_for("its task goes on", lambda: ended(out) or any(half_way(out, done + 1)))
    add_node(head)
    for raylet in first_node:
        os.kill(raylet, signal.SIGKILL)
    printed = finish(start(out, *on(head)))
    assert "with earlier jobs" in printed
    assert digest(out) == expected


def test_detached_then_canceled_through_the_same_command(head: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert "2 cells submitted" in finish(start(out, *on(head), "--detach", "--jobs", "1", steps=5000))
    wait_for("a cell is half-way", lambda: half_way(out))
    worker = worker_of(out)
    parent = start(out, *on(head), steps=5000)
    wait_for("it is attached", lambda: list(out.glob(".claim-*")))
    time.sleep(5)
    parent.send_signal(signal.SIGTERM)
    assert "terminated" in finish(parent, code=143)
    wait_for("its worker has ended", lambda: not Path(f"/proc/{worker}").exists())
    assert not ended(out)


def test_no_cluster_is_one_line(tmp_path: Path) -> None:
    printed = finish(start(tmp_path / "run", *on("127.0.0.1:6398")), code=2)
    assert "no cluster answers at 127.0.0.1:6398" in printed
