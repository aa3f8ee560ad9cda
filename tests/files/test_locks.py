"""Locks: exclusive with and without `flock`, signed, released by death, and loud when waiting takes long."""

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from one_at_a_time import most_inside

from vcpo_bench.files import locks
from vcpo_bench.files.lock_holders import Holder, this_process
from vcpo_bench.files.locks import FileLock, LockHeldError

HOLD = """
import sys, time
from pathlib import Path
from vcpo_bench.files import locks
import fcntl
if sys.argv[2] == "without":
    def refuse(*_): raise OSError(37, "No locks available")
    fcntl.flock = refuse
with locks.FileLock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture(params=["with", "without"])
def flock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "without":

        def refuse(*_: object) -> None:
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

        monkeypatch.setattr(fcntl, "flock", refuse)
    return request.param


def holding(path: Path, flock: str) -> subprocess.Popen[str]:
    """Another process that holds the lock."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(path), flock], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_lock_that_nobody_holds_is_taken_at_once(tmp_path: Path, flock: str) -> None:
    with FileLock(tmp_path / ".lock", wait=False) as lock:
        assert lock.has_flock == (flock == "with")


def test_one_at_a_time(tmp_path: Path, flock: str) -> None:
    assert most_inside(lambda: FileLock(tmp_path / ".lock")) == 1


def test_the_holder_is_named_also_when_stopped_and_its_death_releases(tmp_path: Path, flock: str) -> None:
    path = tmp_path / ".lock"
    with holding(path, flock) as process:
        with pytest.raises(LockHeldError, match=f"^process {process.pid}$"), FileLock(path, wait=False):
            pass
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        with pytest.raises(LockHeldError, match=rf"stopped; end it with: kill -9 {process.pid}"):
            FileLock(path, wait=False).__enter__()
        process.kill()
    with FileLock(path, wait=False) as lock:
        assert lock.has_flock == (flock == "with")
    assert not lock.stand_in.exists()


def test_after_a_while_it_says_who_is_waited_for(tmp_path: Path, flock: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "PATIENCE_SECONDS", 0.2)
    path, said = tmp_path / ".lock", list[str]()
    with holding(path, flock) as process:
        killer = threading.Timer(0.5, process.kill)
        killer.start()
        with FileLock(path, said.append):
            pass
        killer.join()
    assert said == [f"waiting for process {process.pid}, which holds {path}"]


def test_a_folder_removed_meanwhile_is_made_again(tmp_path: Path, flock: str) -> None:
    folder = tmp_path / "cell.partial"
    with FileLock(folder / ".lock"):
        (folder / ".lock").unlink()
        (folder / ".lock.held").unlink(missing_ok=True)
        folder.rmdir()
        with FileLock(folder / ".lock", wait=False):
            assert folder.is_dir()
    assert (folder / ".lock").exists()


def test_a_lock_on_a_file_that_was_removed_meanwhile_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    handle = os.open(path, os.O_CREAT | os.O_RDWR)
    assert locks._same_file(handle, path)
    path.unlink()
    assert not locks._same_file(handle, path)
    os.close(handle)


def test_only_processes_of_this_machine_count_as_gone() -> None:
    ours = json.loads(this_process().text())
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert not Holder(**ours).is_gone
    assert Holder(**ours | {"pid": ended.pid}).is_gone
    assert Holder(**ours | {"started": "1"}).is_gone, "another process has its number now"
    assert not Holder(**ours | {"pid": ended.pid, "machine": "elsewhere"}).is_gone
    assert Holder(**ours | {"host": "elsewhere"}).described() == f"process {os.getpid()} on elsewhere"


@pytest.mark.parametrize("text", ["", "{}", '{"pid": 3}', '{"pid": "x"}', "12", "\0"])
def test_a_stand_in_without_a_signature_is_removed_once_it_is_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    lock = FileLock(tmp_path / ".lock", wait=False)
    lock.stand_in.write_text(text)
    with pytest.raises(LockHeldError, match="a process that did not sign"):
        lock.__enter__()
    os.utime(lock.stand_in, (0, 0))
    with FileLock(tmp_path / ".lock", wait=False):
        pass


def test_another_error_of_the_lock_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(fcntl, "flock", fail)
    with pytest.raises(OSError, match="Input/output"), FileLock(tmp_path / ".lock"):
        pass
