"""More workers than cores or memory are warned of."""

from pathlib import Path

import pytest
from command_line import RUN, call, run_with

from vcpo_bench.bench.regimes import REGIMES
from vcpo_bench.bench.running.pool import memory
from vcpo_bench.bench.running.pool.memory import available_cores, available_gib, memory_warning


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(memory, "available_cores", lambda: 8)
    monkeypatch.setattr(memory, "available_gib", lambda: 5.0)
    return monkeypatch


def test_what_fits_is_not_mentioned(machine: pytest.MonkeyPatch) -> None:
    assert memory_warning(8, [REGIMES.parse(text) for text in ("fifo", "async(clock=virtual)")]) == ""


def test_too_many_for_the_cores(machine: pytest.MonkeyPatch) -> None:
    assert memory_warning(64, [REGIMES.parse("fifo")]).startswith(
        "--jobs 64: 8 CPU cores; the workers take about 38.4 GiB of memory, and 5.0 GiB are available"
    )


def test_sampler_processes_count(machine: pytest.MonkeyPatch) -> None:
    assert memory_warning(8, [REGIMES.parse("fifo"), REGIMES.parse("async")]).startswith(
        "--jobs 8: 8 CPU cores; the workers take about 9.6 GiB"
    )
    machine.setattr(memory, "available_gib", lambda: None)
    assert memory_warning(8, [REGIMES.parse("async")]) == ""


def test_this_machine() -> None:
    assert available_cores() >= 1
    if Path("/proc/meminfo").exists():
        assert 0 < (available_gib() or 0) < 1e5


def test_a_container_may_have_less(tmp_path: Path) -> None:
    assert memory._of_container(tmp_path) is None
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("1000\n")
    assert memory._of_container(tmp_path) is None
    (tmp_path / "memory.max").write_text("5000\n")
    assert memory._of_container(tmp_path) == 4000


def test_the_command_warns_before_anything_runs(machine: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine.setattr(memory, "available_cores", lambda: 2)
    arguments = [*run_with(jobs="64"), "--dry-run", "--out", str(tmp_path / "run")]
    done = call(*arguments)
    assert done.exit_code == 0, done.output
    assert "warning: --jobs 3: 2 CPU cores; " in done.stderr  # no more workers are started than there are cells


def test_the_estimate_of_a_huge_cell_times_a_small_one(tmp_path: Path) -> None:
    sizes = {"--prompts": "100000000", "--responses": "8"}
    arguments = [*RUN, "--no-controls", "--dry-run", "--out", str(tmp_path / "run")]
    for flag, value in sizes.items():
        arguments[arguments.index(flag) + 1] = value
    done = call(*arguments)
    assert done.exit_code == 0, done.output
    hours = float(done.stdout.partition("about ")[2].partition(" h ")[0])
    assert hours > 16
