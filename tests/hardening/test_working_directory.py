"""A stranger's folder as the working directory: no process of ours imports a module from it."""

import multiprocessing
import os
import subprocess
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
from patience import within

from vcpo_bench.bench.python_processes import SAFE_PATH, command_of, safe_path
from vcpo_bench.bench.running.pool import pool

MODULES = ("multiprocessing", "signal", "torch", "numpy", "yaml", "typing_extensions", "runpy")


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that exists once a planted module was imported."""
    for name in MODULES:
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'a').write({name!r})\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "imported"


@pytest.mark.parametrize("safe", [True, False])
def test_a_spawned_process_imports_nothing_from_it(planted: Path, safe: bool) -> None:
    """Without the guard it does: otherwise this would show nothing."""
    process = multiprocessing.get_context("spawn").Process(target=os.getcwd)
    with safe_path() if safe else nullcontext():
        process.start()
    process.join()
    assert (process.exitcode == 0) == safe
    assert planted.exists() != safe


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="reads the environment through /proc")
def test_the_workers_of_the_pool_are_started_so() -> None:
    worker = pool._spawn(0)
    try:
        begun = Path(f"/proc/{worker.process.pid}/environ")
        until = time.monotonic() + within(60)  # it is that of this process until the new one has begun
        while f"{SAFE_PATH}=1".encode() not in begun.read_bytes().split(b"\0"):
            assert time.monotonic() < until
            time.sleep(0.01)
    finally:
        worker.process.kill()
        worker.process.join()
    assert SAFE_PATH not in os.environ


def test_a_module_run_as_a_program_imports_nothing_from_it(planted: Path) -> None:
    done = subprocess.run(command_of("vcpo_bench", "--version"), capture_output=True, timeout=within(60), check=False)
    assert done.returncode == 0
    assert not planted.exists()


@pytest.mark.parametrize("before", [None, "", "1"])
def test_what_the_user_set_is_put_back(monkeypatch: pytest.MonkeyPatch, before: str | None) -> None:
    monkeypatch.delenv(SAFE_PATH, raising=False)
    if before is not None:
        monkeypatch.setenv(SAFE_PATH, before)
    with safe_path():
        assert os.environ[SAFE_PATH] == "1"
    assert os.environ.get(SAFE_PATH) == before
