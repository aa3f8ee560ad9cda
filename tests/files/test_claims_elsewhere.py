"""Claims between machines that share a network file system: nobody can look at another's processes."""

import errno
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from nfs_client import NfsClients

from vcpo_bench.files import claims
from vcpo_bench.files.claim_files import PREFIX
from vcpo_bench.files.claims import Claim, ClaimHeldError, ClaimLostError, claimed
from vcpo_bench.files.lock_holders import this_process


def on(clients: NfsClients, name: str, work: Callable[[], object]) -> threading.Thread:
    """Start something on a machine of that name."""

    def run() -> None:
        clients.join(name)
        work()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_the_layer_itself_shows_changes_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clients, seen = NfsClients(1000.0, monkeypatch), list[object]()
    server = [open(tmp_path / name, "w+") for name in ("kept", "removed", "replaced")]  # noqa: SIM115
    replaced = tmp_path / "replaced"

    def read(name: str) -> str:
        try:
            return (tmp_path / name).read_text()
        except OSError as error:
            return errno.errorcode[error.errno or 0]

    def look() -> None:
        names = ("kept", "removed", "replaced", "new")
        [read(name) for name in names]
        before = sorted(path.name for path in tmp_path.glob("*"))
        ready.set()
        changed.wait()
        seen.extend([before == sorted(path.name for path in tmp_path.glob("*")) == sorted(os.listdir(tmp_path))])
        seen.extend(read(name) for name in names)
        os.close(os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY))
        seen.extend(read(name) for name in names)

    ready, changed = threading.Event(), threading.Event()
    thread = on(clients, "node1", look)
    ready.wait()
    server[0].write("written in place")
    server[0].flush()
    (tmp_path / "removed").unlink()
    (tmp_path / "new").write_text("new")
    (tmp_path / "other").write_text("other")
    os.link(replaced, tmp_path / "elsewhere")
    (tmp_path / "other").replace(replaced)
    changed.set()
    thread.join()
    for file in server:
        file.close()
    late = [True, "written in place", "ESTALE", "", "ENOENT"]
    assert seen == [*late, "written in place", "ENOENT", "other", "new"]
    assert clients.stale["names"]
    assert clients.stale["open"]


def test_the_lease_alone_tells_that_a_holder_elsewhere_has_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "LEASE_SECONDS", 0.6)
    clients, folder = NfsClients(0.2, monkeypatch), tmp_path / "cell"
    held, followed, said = threading.Event(), threading.Event(), list[object]()

    def hold() -> None:
        assert this_process().host == "node1"
        with Claim(folder) as claim:
            held.set()
            clients.stop_until(followed.is_set)
            deadline = time.monotonic() + 30
            while not said and time.monotonic() < deadline:
                try:
                    claim.check()
                except ClaimLostError:
                    said.append("lost")
                time.sleep(0.05)

    def follow() -> None:
        held.wait()
        with Claim(folder) as claim:
            followed.set()
            deadline = time.monotonic() + 30
            while not said and time.monotonic() < deadline:
                time.sleep(0.05)
            claim.check()
            said.append("followed")

    threads = [on(clients, "node1", hold), on(clients, "node2", follow)]
    for thread in threads:
        thread.join()
    assert said == ["lost", "followed"]
    assert not folder.exists()


def test_a_holder_elsewhere_that_beats_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "LEASE_SECONDS", 3.0)
    clients, folder, said = NfsClients(0.2, monkeypatch), tmp_path / "cell", list[object]()
    held, looked = threading.Event(), threading.Event()

    def hold() -> None:
        with Claim(folder):
            (folder / "checkpoint").touch()
            held.set()
            looked.wait()

    def look() -> None:
        held.wait()
        try:
            with Claim(folder, wait=False):
                pass
        except ClaimHeldError as error:
            said.extend([f"{error}", claimed(folder) is not None])
        looked.set()

    threads = [on(clients, "node1", hold), on(clients, "node2", look)]
    for thread in threads:
        thread.join()
    assert said == [f"process {os.getpid()} on node1", True]
    (left,) = folder.glob(f"{PREFIX}*")
    assert claimed(folder) is None, f"{left} was released"
