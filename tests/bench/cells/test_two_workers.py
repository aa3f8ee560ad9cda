"""Two workers on one cell, because one was taken for dead: its results are whole, whoever ends it."""

import errno
import os
import random
import shutil
import threading
import time
import traceback
from contextlib import suppress
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

UPDATES, STOPS, LEASE = 12, 12, 0.6
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


@pytest.mark.parametrize("links", [True, False])
def test_checkpoints_stay_where_they_are_until_the_cell_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    """A process killed while it ends a cell has taken nothing away; nor has one on a file system without hard links."""
    store = CellStore(tmp_path, "a")

    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with store.open():
        store.keep(1, lambda folder: (folder / "state").write_text("kept"))
        if not links:
            monkeypatch.setattr(os, "link", refuse)
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt), store.finish() as final:
            patch.setattr(store, "_end", killed)
            write(final, "first")
        assert [path.name for path in store.checkpoints()] == ["00000001"]
        with store.finish() as final:
            write(final, "second")
    assert (store.final / "checkpoints" / "00000001" / "state").read_text() == "kept"


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


def test_what_another_tidies_first_kills_no_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, rename = CellStore(tmp_path, "a"), Path.rename
    with store.open(), store.finish() as final:
        write(final, "first")
    for left in ("final-01/checkpoints/00000001", "final-01/checkpoint-00000002", "replaced-02"):
        (store.partial / left).mkdir(parents=True)
    shutil.copytree(store.final, store.partial / "replaced-02", dirs_exist_ok=True)
    shutil.rmtree(store.final)

    def too_late(path: Path, target: Path) -> Path:
        if path.name.startswith(("replaced-", "0", "checkpoint-")):
            shutil.rmtree(path)
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", too_late)
    with store.open():
        store.check()
        assert not store.checkpoints()


def test_a_worker_whose_draft_another_removes_has_lost_the_cell(tmp_path: Path) -> None:
    """Whatever its writing raises then: that is no error of the cell."""
    store = CellStore(tmp_path, "a")
    for _ in range(2):
        with store.open():
            with pytest.raises(ClaimLostError), store.checkpoint(1) as draft:
                shutil.rmtree(draft)
                (draft / "state").write_text("nowhere")
            with pytest.raises(ClaimLostError), store.finish() as final:
                shutil.rmtree(store.partial)
                raise RuntimeError(f"the folder {final} does not exist")
    with store.open(), pytest.raises(FileNotFoundError), store.checkpoint(1) as draft:
        (draft / "weights" / "state").write_text("an error of the cell")


def test_machines_that_share_a_network_file_system_end_a_cell_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No locks, what others change is seen late, and machines stand still anywhere, for longer than their lease."""
    monkeypatch.setattr(claims, "LEASE_SECONDS", LEASE)
    machines, problems, chance = Machines(tmp_path, monkeypatch), list[str](), random.Random(0)

    def work(name: str) -> None:
        machines.join(name, random.Random(chance.random()))
        for _ in range(200):
            try:
                if run(CellStore(tmp_path, "a"), name):
                    return
            except ClaimLostError:
                machines.lost += 1
            except Exception:
                problems.append(traceback.format_exc())
                return
        problems.append(f"{name} came to no end")

    threads = [threading.Thread(target=work, args=(f"machine{number}",)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems, problems[0]
    assert machines.lost, "nobody was taken for dead"
    assert machines.clients.stale.total(), "nothing was seen late"
    assert status_of(tmp_path / "a") == "completed"
    kept = {path.name for path in (tmp_path / "a" / "checkpoints").iterdir() if (path / "state").exists()}
    assert kept == {f"{step:08d}" for step in range(3, UPDATES + 1, 3)}
    CellStore(tmp_path, "a").discard()
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


class Machines:
    """Machines that share a folder with one cell in it, and stand still now and then, `STOPS` times in all."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self._listed, self._exists = os.listdir, os.path.lexists
        self.clients, self._store, self._here = NfsClients(LEASE / 3, patch), CellStore(folder, "a"), threading.local()
        self.clients.before_change = self._stand_still
        self.lost, self._stops = 0, STOPS

    def join(self, name: str, chance: random.Random) -> None:
        self.clients.join(name)
        self._here.chance, self._here.left = chance, chance.randrange(10, 30)

    def _stand_still(self) -> None:
        """Until another has the cell, and somewhat longer."""
        if not hasattr(self._here, "left") or not self._stops:
            return  # this thread is a heartbeat
        self._here.left -= 1
        if self._here.left:
            return
        chance = self._here.chance
        self._here.left, self._stops = chance.randrange(10, 30), self._stops - 1
        before = self._claims()
        self.clients.stop_until(lambda: self._exists(self._store.final) or bool(self._claims() - before))
        time.sleep(chance.random() * LEASE / 3)

    def _claims(self) -> set[str]:
        with suppress(FileNotFoundError):
            return {name for name in self._listed(self._store.partial) if name.startswith(PREFIX)}
        return set()


def run(store: CellStore, name: str) -> bool:
    """What a worker does with a cell; whether it has ended."""
    with store.open():
        if store.ended():
            store.clear()
            return True
        done = max([0, *(int(path.name.split("-")[-1]) for path in store.checkpoints())])
        for step in range(done + 1, UPDATES + 1):
            if step % 3 == 0:
                store.keep(step, lambda folder: (folder / "state").write_text("kept"))
            with store.checkpoint(step) as draft:
                (draft / "state").write_text(f"{step}")
        with store.finish() as final:
            write(final, name)
    return True
