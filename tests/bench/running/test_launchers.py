"""What launchers do with what schedulers refuse, and with what other launchers left."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from fake_scheduler import cells_of

from vcpo_bench.bench.running.jobs import Job, _threads
from vcpo_bench.bench.running.launchers import slurm
from vcpo_bench.bench.running.launchers.ray_tasks import _is_ours
from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.errors import UsageError


class FailedJobError(Exception):
    """As submitit raises it."""


def test_arrays_before_a_refused_one_are_canceled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody would know of them: the same command would submit their cells again."""
    executor = SimpleNamespace(update_parameters=lambda **parameters: None)
    names = ("submitit", "submitit.core", "submitit.core.utils")
    modules = {name: ModuleType(name) for name in names}
    modules["submitit"].SlurmExecutor = lambda folder, max_num_timeout: executor
    modules["submitit.core.utils"].FailedJobError = FailedJobError
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(slurm, "_longest_array", lambda: 2)
    asked: list[list[str]] = []
    monkeypatch.setattr(slurm, "_answer", lambda words: asked.append(list(words)) or "")
    arrays: list[int] = []

    def submit(executor: object, array: list[Job]) -> list[str]:
        arrays.append(len(array))
        if len(arrays) > 1:
            raise FailedJobError("sbatch: error: AssocMaxSubmitJobLimit")
        return [f"100_{number}" for number in range(len(array))]

    monkeypatch.setattr(slurm, "_submit", submit)
    scheduler = slurm.Slurm().connect(RunOptions(tmp_path, 0), detach=False)
    jobs = [Job(tmp_path, (cell.key,)) for cell in cells_of(tmp_path, 4)]
    with pytest.raises(UsageError, match="sbatch refused the jobs: sbatch: error: AssocMaxSubmitJobLimit"):
        scheduler.submit(jobs, 0)
    assert arrays == [2, 2]
    assert asked == [["scancel", "--quiet", "100_0", "100_1"]]


def test_handles_of_another_launcher_are_not_taken_for_tasks_of_ray() -> None:
    assert _is_ours("vcpo-bench-keeper-1a2b:17")
    assert not any(_is_ours(handle) for handle in ("keeper:4c1fa633a029", "4c1fa633a029", "100_0", ":3", ""))


@pytest.mark.parametrize(("value", "threads"), [("4,2", 4), ("3", 3), ("", 1), ("0", 1), ("many", 1)])
def test_threads_are_read_as_openmp_reads_them(value: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert _threads() == threads
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert _threads() == 1
