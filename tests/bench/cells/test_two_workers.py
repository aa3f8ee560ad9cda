"""Two workers on one cell, because one was taken for dead: its results are whole, whoever ends it."""

import shutil
import threading
import time
from pathlib import Path

import pytest
from nfs_client import NfsClients

from vcpo_bench.bench.cells.cell_store import CellStore
from vcpo_bench.bench.cells.results_folder import status_of
from vcpo_bench.bench.training.step_recorder import StepRecorder
from vcpo_bench.files import claims
from vcpo_bench.files.checksums import write_sealed
from vcpo_bench.files.claim_files import PREFIX
from vcpo_bench.files.claims import ClaimLostError

CONFIG = {"task": "chain", "method": "clip", "regime": "fifo", "staleness": 1, "lr": 3e-4, "seed": 0, "steps": 1}


def write(folder: Path, by: str, status: str = "completed") -> None:
    StepRecorder("basic").write(folder)
    write_sealed(folder / "cell.json", {"status": status, "key": "a", "config": CONFIG, "by": by})


def take_over(store: CellStore) -> None:
    """Another worker takes the holder of the cell for dead."""
    (path,) = store.partial.glob(f"{PREFIX}*")
    path.rename(store.partial / "taken")
    (store.partial / "taken").unlink()


def test_a_worker_taken_for_dead_publishes_nothing_and_removes_nothing(tmp_path: Path) -> None:
    slow, fast = CellStore(tmp_path, "a"), CellStore(tmp_path, "a")
    with slow.open():
        slow.keep(1, lambda folder: (folder / "state").write_text("slow"))
        with pytest.raises(ClaimLostError), slow.finish() as final:
            write(final, "slow")
            take_over(slow)
            with fast.open():
                assert [path.name for path in fast.checkpoints()] == ["00000001"]
                with pytest.raises(ClaimLostError), slow.checkpoint(2) as draft:
                    (draft / "state").write_text("slow")
                fast.keep(2, lambda folder: (folder / "state").write_text("fast"))
                with fast.finish() as ours:
                    write(ours, "fast")
    assert '"by": "fast"' in (tmp_path / "a" / "cell.json").read_text()
    assert sorted(path.name for path in (tmp_path / "a" / "checkpoints").iterdir()) == ["00000001", "00000002"]


def test_the_second_finisher_discards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The moment in which a check no longer helps: both are past it."""
    slow, fast = CellStore(tmp_path, "a"), CellStore(tmp_path, "a")
    with slow.open():
        with slow.finish() as final:
            write(final, "slow")
            take_over(slow)
            with fast.open(), fast.finish() as ours:
                write(ours, "fast")
            slow.partial.mkdir(exist_ok=True)
            final.mkdir(exist_ok=True)
            write(final, "slow")
            monkeypatch.setattr(slow, "check", lambda: None)
    assert '"by": "fast"' in (tmp_path / "a" / "cell.json").read_text()


def test_a_failed_run_is_replaced_and_a_completed_one_never(tmp_path: Path) -> None:
    for by, status in (("first", "error"), ("second", "completed"), ("third", "completed"), ("fourth", "error")):
        store = CellStore(tmp_path, "a")
        with store.open(), store.finish(failed=status == "error") as final:
            write(final, by, status)
    assert '"by": "second"' in (tmp_path / "a" / "cell.json").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_cell_that_was_aside_when_its_worker_was_killed_returns(tmp_path: Path) -> None:
    store = CellStore(tmp_path, "a")
    with store.open(), store.finish() as final:
        write(final, "first")
    store.partial.mkdir()
    store.final.rename(store.partial / "replaced-0123")
    with store.open():
        assert store.ended() == "completed"


def test_clients_of_a_network_file_system_end_a_cell_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many workers, no locks, listings that are out of date; some are taken for dead, and others follow."""
    monkeypatch.setattr(claims, "LEASE_SECONDS", 1.0)
    clients, problems, finishes = NfsClients(0.1, monkeypatch), [], []

    def work(name: str) -> None:
        clients.join()
        store = CellStore(tmp_path, "a")
        for step in range(1, 60):
            try:
                with store.open():
                    if store.ended():
                        return
                    done = max([0, *(int(path.name.split("-")[-1]) for path in store.checkpoints())])
                    if done >= 12:
                        with store.finish() as final:
                            write(final, name)
                        finishes.append(name)
                        return
                    with store.checkpoint(done + 1) as draft:
                        (draft / "state").write_text(str(done + 1))
                    if step % 4 == 0:
                        take_over(store)
                        time.sleep(0.01)
                        with store.checkpoint(done + 2) as draft:
                            (draft / "state").write_text("of a dead worker")
            except (ClaimLostError, FileNotFoundError):
                continue
            except Exception as problem:
                problems.append(problem)
                return
        problems.append(f"{name} came to no end")

    threads = [threading.Thread(target=work, args=(f"worker{number}",)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert len(finishes) == 1
    assert clients.stale, "no client ever saw anything late"
    assert status_of(tmp_path / "a") == "completed"
    assert f'"by": "{finishes[0]}"' in (tmp_path / "a" / "cell.json").read_text()
    shutil.rmtree(tmp_path / "a.partial", ignore_errors=True)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
