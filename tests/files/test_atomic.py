"""Files replaced as a whole: whatever goes wrong, the old file stays, and nothing is left beside it."""

import errno
import os
import stat
from contextlib import nullcontext
from pathlib import Path

import pytest
from lossy_disk import STATES, LossyDisk

from vcpo_bench.errors import UsageError
from vcpo_bench.files.atomic import check_writable, replacing, write_bytes, write_text
from vcpo_bench.files.folders import made


def test_the_new_file_takes_the_place_and_the_permissions_of_the_old(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write_text(path, "old")
    path.chmod(0o640)
    write_text(path, "né")
    assert path.read_bytes() == "né".encode()
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["page.html"]


@pytest.mark.parametrize("problem", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_writer_leaves_the_old_file_alone(tmp_path: Path, problem: type[BaseException]) -> None:
    path = tmp_path / "table.csv"
    write_bytes(path, b"old")
    with pytest.raises(problem), replacing(path) as draft:
        draft.write(b"half of")
        raise problem
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["table.csv"]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="reads synced files through /proc")
@pytest.mark.parametrize("unsynced", STATES)
def test_a_power_loss_leaves_the_new_file_once_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unsynced: str
) -> None:
    (tmp_path / "disk").mkdir()
    write_text(tmp_path / "disk" / "grid.json", "old")
    with monkeypatch.context() as patch:
        disk = LossyDisk(tmp_path / "disk", patch)
        write_text(tmp_path / "disk" / "grid.json", "new")
        write_text(tmp_path / "disk" / "launch.json", "first")
    left = disk.after_power_loss(unsynced, tmp_path / "after")
    disk.close()
    assert {path.name: path.read_text() for path in left.iterdir()} == {"grid.json": "new", "launch.json": "first"}


@pytest.mark.parametrize(("number", "matters"), [(errno.EINVAL, False), (errno.EIO, True)])
def test_a_file_system_that_cannot_sync_folders_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, matters: bool
) -> None:
    sync = os.fsync

    def refuse(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(number, os.strerror(number))
        sync(handle)

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="Input/output") if matters else nullcontext():
        write_text(tmp_path / "page.html", "x")
    assert (tmp_path / "page.html").read_text() == "x"


def test_a_full_disk_leaves_the_old_file_alone_and_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "table.csv"
    write_bytes(path, b"old")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as raised:
        write_bytes(path, b"new")
    assert raised.value.filename == str(path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["table.csv"]


def test_the_error_of_a_folder_that_is_not_there_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        write_text(tmp_path / "no" / "page.html", "x")
    assert raised.value.filename == str(tmp_path / "no" / "page.html")


def test_what_the_user_named_may_be_a_link_or_a_device(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "link.html"
    link.symlink_to(tmp_path / "real" / "page.html")
    write_text(link, "x", typed=True)
    assert link.is_symlink()
    assert (tmp_path / "real" / "page.html").read_text() == "x"
    write_text(Path(os.devnull), "x", typed=True)


def secret_behind(link: Path, kind: str) -> Path:
    """Put a link or something else under a name; returns a file that must stay as it is."""
    secret = link.parent.parent / "secret"
    secret.write_text("mine")
    if kind == "pipe":
        os.mkfifo(link)
    else:
        link.symlink_to({"file": secret, "nothing": secret.with_name("new"), "folder": secret.parent}[kind])
    return secret


@pytest.mark.parametrize("kind", ["file", "nothing", "folder", "pipe"])
def test_any_other_link_is_replaced_and_never_followed(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "gift" / "scoreboard.csv"
    path.parent.mkdir()
    secret = secret_behind(path, kind)
    write_text(path, "x")
    assert not path.is_symlink()
    assert path.read_text() == "x"
    assert secret.read_text() == "mine"
    assert sorted(os.listdir(tmp_path)) == ["gift", "secret"]
    assert os.listdir(path.parent) == ["scoreboard.csv"]


def test_a_link_put_in_place_while_the_file_is_written_is_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "gift" / "scoreboard.csv"
    path.parent.mkdir()
    path.write_text("old")
    with replacing(path) as file:
        file.write(b"x")
        path.unlink()
        secret = secret_behind(path, "file")
        (draft,) = path.parent.glob(".*.draft")
        draft.unlink()
        draft.symlink_to(secret)  # what is renamed then is the link itself
    assert secret.read_text() == "mine"


def test_a_folder_that_is_exchanged_for_a_link_is_written_where_it_is_now(tmp_path: Path) -> None:
    home, gift = tmp_path / "home", tmp_path / "gift"
    home.mkdir()
    gift.mkdir()
    with replacing(gift / "page.html") as file:
        file.write(b"x")
        gift.rename(tmp_path / "moved")
        gift.symlink_to(home)
    assert (tmp_path / "moved" / "page.html").read_bytes() == b"x"
    assert os.listdir(home) == []


def test_below_a_folder_no_link_to_a_folder_is_followed(tmp_path: Path) -> None:
    home, gift = tmp_path / "home", tmp_path / "gift"
    home.mkdir()
    (gift / "inner").mkdir(parents=True)
    (gift / "inner" / "probes").symlink_to(home)
    for write in (write_text, lambda path, _, below: check_writable(path, below=below)):
        with pytest.raises(UsageError, match=r"inner/probes is a link, which is not followed"):
            write(gift / "inner" / "probes" / "a.parquet", "x", below=gift)
    with pytest.raises(UsageError, match=r"inner/probes is a link, which is not followed"):
        made(gift, "inner", "probes")
    write_text(gift / "inner" / "probes" / "a.parquet", "x", below=gift / "inner" / "probes")  # a link the user named
    assert os.listdir(home) == ["a.parquet"]
    write_text(made(gift, "inner", "deep", "er") / "page", "x", below=gift)
    assert (gift / "inner" / "deep" / "er" / "page").read_text() == "x"


def test_a_stranger_cannot_make_what_we_write_a_program(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("")
    path.chmod(0o4755)
    write_text(path, "rm -rf ~")
    assert path.stat().st_mode & 0o7777 == 0o644


def test_two_writers_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    with replacing(path) as ours:
        ours.write(b"ours")
        with replacing(path) as theirs:
            theirs.write(b"theirs")
        assert path.read_text() == "theirs"
    assert path.read_text() == "ours"
