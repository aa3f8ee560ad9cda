"""A full disk is recognized whichever library reports it, and named."""

import errno
import os
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from vcpo_bench.files import disk_space
from vcpo_bench.files.disk_space import disk_full, is_disk_full


def raised_from(cause: Exception) -> Exception:
    try:
        try:
            raise cause
        except Exception as error:
            raise RuntimeError("a table cannot be written") from error
    except RuntimeError as error:
        return error


def raised_beside(problem: Exception) -> Exception:
    try:
        try:
            raise problem
        finally:
            raise RuntimeError("the writer cannot be closed")
    except RuntimeError as error:
        return error


@pytest.mark.parametrize(
    ("error", "full"),
    [
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), True),
        (OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)), True),
        (RuntimeError("Error while serializing: I/O error: No space left on device (os error 28)"), True),
        (raised_from(OSError(errno.ENOSPC, "full")), True),
        (OSError(errno.EIO, os.strerror(errno.EIO)), False),
        (raised_beside(OSError(errno.ENOSPC, "full")), True),
        (raised_from(ValueError("shape")), False),
        (None, False),
    ],
)
def test_a_full_disk_is_recognized(error: Exception | None, full: bool) -> None:
    assert is_disk_full(error) is full


def test_the_folder_on_the_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    roomy, full = tmp_path / "roomy", tmp_path / "full"
    roomy.mkdir()
    full.mkdir()
    free = namedtuple("free", ["f_bavail", "f_frsize"])
    monkeypatch.setattr(
        disk_space.os, "statvfs", lambda path: free(0 if Path(path) == full else 10**9, 4096), raising=True
    )
    message = str(disk_full([roomy / "page.html", full / "not" / "there" / "yet"]))
    assert message == f"{full}: the disk is full; free space there, then run the same command again"


def test_with_space_left_everywhere_it_is_a_quota_of_the_first_folder(tmp_path: Path) -> None:
    assert str(disk_full([tmp_path / "out"])).startswith(f"{tmp_path}: ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
@pytest.mark.parametrize("arguments", [["ls", "regimes"], ["--help"]])
def test_output_that_cannot_be_written_is_one_line(arguments: list[str]) -> None:
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-m", "vcpo_bench", *arguments]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, env=buffered, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert done.stderr == b"error: standard output: the disk it is written to is full; free space there\n"
