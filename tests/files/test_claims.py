"""Claims: one holder at a time, found dead at once on its own machine and by its silence elsewhere."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vcpo_bench.files import claims
from vcpo_bench.files.claim_files import PREFIX, claim_path
from vcpo_bench.files.claim_text import SIZE, Claimed
from vcpo_bench.files.claims import Claim, ClaimHeldError, ClaimLostError, claimed
from vcpo_bench.files.lock_holders import this_process

HOLD = """
import sys, time
from pathlib import Path
from vcpo_bench.files.claims import Claim
with Claim(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def _short_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "LEASE_SECONDS", 0.4)


def elsewhere(folder: Path, number: int = 1, job: str = "") -> Path:
    """A claim of a process on another machine."""
    folder.mkdir(exist_ok=True)
    holder = replace(this_process(), host="node7", machine="another boot", pid=4)
    path = claim_path(folder, number)
    path.write_bytes(Claimed(holder, job).bytes())
    return path


def test_one_at_a_time(tmp_path: Path) -> None:
    assert most_inside(lambda: Claim(tmp_path / "cell")) == 1
    assert not (tmp_path / "cell").exists()


def test_a_killed_process_of_this_machine_is_followed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "LEASE_SECONDS", 1000.0)
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(ClaimHeldError, match=f"^process {process.pid}$"), Claim(tmp_path, wait=False):
            pass
        process.send_signal(signal.SIGKILL)
        process.wait()
        with Claim(tmp_path, wait=False) as claim:
            (path,) = tmp_path.iterdir()
            assert path.name.startswith(PREFIX)
            claim.check()


@pytest.mark.parametrize("clock", [-1e6, 1e6])
def test_silence_is_measured_by_the_one_who_waits_whatever_the_clocks_say(tmp_path: Path, clock: float) -> None:
    path = elsewhere(tmp_path)
    os.utime(path, (time.time() + clock,) * 2)
    began = time.monotonic()
    with Claim(tmp_path):
        assert time.monotonic() - began > 0.4


def test_a_holder_that_beats_is_never_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "LEASE_SECONDS", 60.0)
    path, stop = elsewhere(tmp_path), threading.Event()

    def beat() -> None:
        number = 0
        while not stop.wait(0.05):
            found = Claimed.read(path.read_text())
            assert found is not None
            path.write_bytes(replace(found, beat=(number := number + 1)).bytes())

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        with pytest.raises(ClaimHeldError, match="process 4 on node7"), Claim(tmp_path, wait=False):
            pass
    finally:
        stop.set()
        thread.join()


def test_a_job_that_is_started_again_elsewhere_need_not_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "LEASE_SECONDS", 1000.0)
    elsewhere(tmp_path, job="17_3")
    with Claim(tmp_path, wait=False, job="17_3") as claim:
        claim.check()


def test_who_is_taken_for_dead_learns_it_and_leaves_the_folder_alone(tmp_path: Path) -> None:
    with Claim(tmp_path / "cell") as first:
        first.check()
        newer = elsewhere(tmp_path / "cell", number=first._number + 1)
        with pytest.raises(ClaimLostError, match="taken over"):
            first.check()
    assert newer.exists()


def test_a_claim_on_an_old_listing_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere(tmp_path, number=3)
    monkeypatch.setattr(claims, "names_in", lambda _: [f"{PREFIX}00000001"])
    watch = claims.ClaimHistory()
    monkeypatch.setattr(watch, "is_abandoned", lambda *_: True)
    assert not Claim(tmp_path)._try(watch)
    assert [path.name for path in tmp_path.iterdir()] == [f"{PREFIX}00000003"]


def test_who_wakes_late_meets_no_claim_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first is stopped beyond its lease; a second takes over and ends without a result; a third starts."""
    folder, awake, beat = tmp_path / "cell", threading.Event(), Claim._beat

    def stopped(claim: Claim) -> None:
        awake.wait()
        beat(claim)

    with monkeypatch.context() as patch:
        patch.setattr(Claim, "_beat", stopped)
        first = Claim(folder).__enter__()
    with Claim(folder):
        pass
    with Claim(folder) as third:
        first.note = {"of": "the first"}
        awake.set()
        deadline = time.monotonic() + 5
        while first._claimed.beat < 5:
            assert time.monotonic() < deadline
            third.check()
            time.sleep(0.01)
        with pytest.raises(ClaimLostError):
            first.check()
        first.__exit__(None, None, None)
        third.check()
    assert not folder.exists()


def test_a_heartbeat_leaves_what_another_wrote_alone(tmp_path: Path) -> None:
    with Claim(tmp_path / "cell") as ours:
        (path,) = (tmp_path / "cell").iterdir()
        theirs = Claimed(this_process()).bytes()
        path.unlink()
        path.write_bytes(theirs)
        seen = ours._claimed.beat
        deadline = time.monotonic() + 5
        while ours._claimed.beat < seen + 3:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert path.read_bytes() == theirs
        with pytest.raises(ClaimLostError):
            ours.check()
    assert path.read_bytes() == theirs


@pytest.mark.parametrize("rest", [False, True])
def test_numbers_never_recur(tmp_path: Path, rest: bool) -> None:
    """Nor after the folder was removed and made again."""
    folder, used = tmp_path / "cell", set[str]()
    for turn in range(1, 6):
        if rest and not folder.exists():
            folder.mkdir()
            (folder / "checkpoint").touch()
        with Claim(folder, wait=False):
            used |= {path.name for path in folder.iterdir() if path.name.startswith(PREFIX)}
        assert len(used) == turn
        assert claimed(folder) is None
        assert folder.exists() == rest
        assert len(list(tmp_path.rglob(f"{PREFIX}*"))) == rest, "one that is released, for the sake of its number"


def test_a_released_claim_holds_nothing_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "LEASE_SECONDS", 1000.0)
    left = elsewhere(tmp_path)
    found = Claimed.read(left.read_text())
    assert found is not None
    left.write_bytes(replace(found, released=True).bytes())
    assert claimed(tmp_path) is None
    with Claim(tmp_path, wait=False) as claim:
        claim.check()
        assert not left.exists()


def test_two_who_see_no_folder_make_one_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "names_in", lambda _: [])
    with Claim(tmp_path / "cell") as first:
        assert not Claim(tmp_path / "cell")._try(claims.ClaimHistory())
        first.check()
    assert not list(tmp_path.iterdir())


def test_a_folder_whose_surroundings_are_gone_is_not_waited_for(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), Claim(tmp_path / "removed" / "cell"):
        pass


def test_notes_are_published_with_the_heartbeat(tmp_path: Path) -> None:
    with Claim(tmp_path, job="9") as claim:
        claim.note = {"step": 3}
        deadline = time.monotonic() + 5
        while (found := claimed(tmp_path)) is None or found.note != {"step": 3}:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert (found.job, found.holder.token) == ("9", claim.token)
    assert claimed(tmp_path) is None


def test_the_text_has_one_size_and_other_texts_are_refused() -> None:
    one = Claimed(this_process(), note={"x": "y" * 2 * SIZE})
    assert len(one.bytes()) == SIZE
    read = Claimed.read(one.bytes().decode())
    assert read is not None
    assert read.note == {}
    for text in ("", "{", "[]", '{"holder": {}}', '{"holder": {"pid": 1}, "job": 1}'):
        assert Claimed.read(text) is None


def test_file_systems_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    (tmp_path / "checkpoint").touch()
    with Claim(tmp_path):
        with pytest.raises(ClaimHeldError), Claim(tmp_path, wait=False):
            pass


def test_a_full_disk_leaves_no_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", refuse)
    with pytest.raises(OSError, match="No space"), Claim(tmp_path):
        pass
    assert not list(tmp_path.iterdir())


def test_waiting_long_names_the_holder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "PATIENCE_SECONDS", 0.1)
    elsewhere(tmp_path)
    said: list[str] = []
    with Claim(tmp_path, said.append):
        assert said == [f"waiting for process 4 on node7, which works on {tmp_path}"]


def test_only_processes_of_this_machine_count_as_gone() -> None:
    ours = this_process()
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert not ours.is_gone
    assert replace(ours, pid=ended.pid).is_gone
    assert replace(ours, started="1").is_gone, "another process has its number now"
    assert not replace(ours, pid=ended.pid, machine="elsewhere").is_gone
    assert replace(ours, host="elsewhere").described() == f"process {os.getpid()} on elsewhere"


def most_inside(lock: Callable[[], AbstractContextManager[Any]]) -> int:
    """Four threads that enter a lock three times each.

    Args:
        lock: Makes the lock that a thread enters.
    """
    inside, most = [0], [0]

    def work() -> None:
        for _ in range(3):
            with lock():
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                time.sleep(0.002)
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return most[0]
