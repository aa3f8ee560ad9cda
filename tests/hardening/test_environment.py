"""Shells and machines as they may be: closed or full streams, little memory. One line or none, never a traceback."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from command_line import call
from patience import within

from vcpo_bench.cli import ADVICE, is_out_of_memory
from vcpo_bench.errors import DamagedResultError
from vcpo_bench.files import parquet

FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="there is no device that is always full")


@pytest.fixture(scope="module")
def results(make_results: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    return make_results(folder, methods=("clip",), lags=(1,), seeds=(0,), steps=20, controls=False)


def vcpo_bench(*arguments: str, shell: str = "") -> subprocess.CompletedProcess[bytes]:
    """The command, started by a shell with its streams changed."""
    words = [sys.executable, "-m", "vcpo_bench", *arguments]
    line = f'exec "$@" {shell}'
    return subprocess.run(["sh", "-c", line, "sh", *words], capture_output=True, timeout=within(60), check=False)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_error_and_get_no_file_of_ours(results: Path, closed: str) -> None:
    done = vcpo_bench("show", str(results), shell=closed)
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr
    assert (results / "scoreboard.csv").read_text().count("\n") == 2  # nothing that was printed is in it
    assert b"clip" in done.stdout if closed in ("<&-", "2>&-") else done.stdout == b""


@needs_full
@pytest.mark.parametrize(
    "arguments",
    [("show", "DIR"), ("results", "check", "DIR"), ("--version",), ("results", "export", "DIR", "--out", "OUT")],
)
def test_a_full_standard_output_is_named_as_such(results: Path, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    names = {"DIR": str(results), "OUT": str(tmp_path / "out")}
    done = vcpo_bench(*(names.get(one, one) for one in arguments), shell=f"> {FULL}")
    assert done.returncode == 2
    assert done.stderr == b"error: standard output: the disk it is written to is full; free space there\n"


@needs_full
def test_a_full_error_output_changes_nothing_else(tmp_path: Path) -> None:
    assert vcpo_bench("show", str(tmp_path), shell=f"2> {FULL}").returncode == 2


def test_a_reader_who_leaves_is_no_error(results: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    words = [sys.executable, "-m", "vcpo_bench", "show", str(results)]
    done = subprocess.run(words, stdout=write, stderr=subprocess.PIPE, timeout=within(60), check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (OSError(12, "Cannot allocate memory"), True),
        (ImportError("libtorch.so: failed to map segment from shared object"), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"), True),
        (pa.ArrowMemoryError("malloc of size 8 failed"), True),
        (OSError(2, "No such file or directory"), False),
        (ImportError("No module named 'x'"), False),
        (None, False),
    ],
)
def test_what_means_that_memory_ran_out(error: BaseException | None, expected: bool) -> None:
    assert is_out_of_memory(error) == expected
    if error is not None:
        wrapped = RuntimeError("while reading")
        wrapped.__cause__ = error
        assert is_out_of_memory(wrapped) == expected


def test_too_little_memory_is_one_line(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def empty(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("vcpo_bench.analysis.results.load_comparable", empty)
    result = call("show", str(results))
    assert (result.exit_code, result.stderr) == (2, f"error: {ADVICE}\n")


def test_a_table_that_memory_has_no_room_for_is_not_damaged(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def empty(*_: object, **__: object) -> None:
        raise pa.ArrowMemoryError("malloc of size 8 failed")

    monkeypatch.setattr(parquet.pq, "ParquetFile", empty)
    with pytest.raises(MemoryError) as raised:
        parquet.read_parquet(next(results.glob("cells/*/steps.parquet")))
    assert not isinstance(raised.value, DamagedResultError)
