"""Grids on Ray: the same bits as on one machine, whatever happens to workers, nodes and parents."""

import os
import signal
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest
from launched_grids import digest, ended, finish, half_way, read_until, send, start, wait_for, worker_of, workers_of

Cluster = pytest.importorskip("ray.cluster_utils", reason="runs in .ci/integrations ray").Cluster
NODE = {"num_cpus": 2, "object_store_memory": 80_000_000}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    out = tmp_path_factory.mktemp("local") / "run"
    finish(start(out, "--jobs", "2"))
    return digest(out)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A cluster whose head runs no cells, so that a node can be lost."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_worker_niceness", "0")
        one = Cluster(initialize_head=True, head_node_args={**NODE, "num_cpus": 0, "include_dashboard": False})
        yield one
        one.shutdown()


def lose(node: Any, workers: Collection[int]) -> None:
    """End everything on a node at once, as a loss of power would."""
    (raylet,) = node.all_processes["raylet"]
    send(signal.SIGKILL, (raylet.process.pid, *workers))


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


def test_a_killed_parent_and_a_lost_node(cluster: Cluster, tmp_path: Path, expected: dict[str, str]) -> None:
    out = tmp_path / "run"
    node = cluster.add_node(**NODE)
    first = start(out, *on(cluster.address))
    wait_for("a cell is half-way", lambda: half_way(out))
    first.kill()
    first.wait()
    done = max(int(path.name.rpartition("-")[2]) for path in half_way(out))
    wait_for("its task goes on", lambda: half_way(out, done + 1))
    lose(node, workers_of(out))
    assert not ended(out)
    second = start(out, *on(cluster.address))
    other = cluster.add_node(**NODE)
    assert "2 with earlier jobs" in finish(second)
    assert digest(out) == expected
    cluster.remove_node(other)


def test_detached_then_canceled_through_the_same_command(cluster: Cluster, tmp_path: Path) -> None:
    out = tmp_path / "run"
    cluster.add_node(**NODE)
    assert "2 cells submitted" in finish(start(out, *on(cluster.address), "--detach", "--jobs", "1", steps=5000))
    parent = start(out, *on(cluster.address), steps=5000)
    read_until(parent, "2 with earlier jobs")
    wait_for("a cell is half-way", lambda: half_way(out))
    worker = worker_of(out)
    parent.send_signal(signal.SIGTERM)
    assert "terminated" in finish(parent, code=143)
    wait_for("its worker has ended", lambda: not Path(f"/proc/{worker}").exists())
    assert not ended(out)


def test_no_cluster_is_one_line(tmp_path: Path) -> None:
    printed = finish(start(tmp_path / "run", *on("127.0.0.1:6398")), code=2)
    assert "no cluster answers at 127.0.0.1:6398" in printed


@pytest.mark.parametrize(("asked", "unit"), [("cpus=999", "CPU cores"), ("memory=99999", "GiB of memory")])
def test_what_this_machine_can_never_give_is_one_line(asked: str, unit: str, tmp_path: Path) -> None:
    printed = finish(start(tmp_path / "run", "--launcher", f"ray(address=local,{asked})"), code=2)
    (line,) = [line for line in printed.splitlines() if line.startswith("error")]
    assert unit in line
    assert "name a running cluster" in line
