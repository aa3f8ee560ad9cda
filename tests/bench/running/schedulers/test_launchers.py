"""What launchers do with what schedulers refuse, and with what other launchers left."""

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from fake_scheduler import cells_of

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.cells.results_folder import ResultsFolder
from vcpo_bench.bench.running.cell import run_cell
from vcpo_bench.bench.running.cell.train_outside import _gpus
from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.schedulers import slurm
from vcpo_bench.bench.running.schedulers.loop.job import Job, _threads, run_job
from vcpo_bench.bench.running.schedulers.loop.scheduler import JobResult
from vcpo_bench.bench.running.schedulers.loop.scheduler_loop import SchedulerLoop
from vcpo_bench.bench.trainers.catalog import OutsideTrainer
from vcpo_bench.errors import UsageError


class FailedJobError(Exception):
    """As submitit raises it."""


def without_submitit(monkeypatch: pytest.MonkeyPatch, updates: list[dict[str, object]]) -> None:
    """A cluster of arrays of two; `updates` receives the parameters of each array."""
    executor = SimpleNamespace(update_parameters=lambda **parameters: updates.append(parameters))
    names = ("submitit", "submitit.core", "submitit.core.utils")
    modules = {name: ModuleType(name) for name in names}
    modules["submitit"].SlurmExecutor = lambda folder, **settings: executor
    modules["submitit.core.utils"].FailedJobError = FailedJobError
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(slurm, "_longest_array", lambda: 2)


@pytest.mark.parametrize("taken", [True, False], ids=["its answer came too late", "refused"])
def test_arrays_before_a_refused_one_are_canceled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: bool) -> None:
    """Also the jobs of one that the controller took although sbatch says that it failed: the queue shows them."""
    without_submitit(monkeypatch, [])
    asked: list[list[str]] = []
    queue = ["100_0 RUNNING None", "100_1 PENDING Priority", *["101_0 PENDING Priority"] * taken, "99_0 COMPLETED None"]

    def answer(words: Sequence[str]) -> str:
        asked.append(list(words))
        return "\n".join(queue) if words[0] == "squeue" and arrays else ""

    monkeypatch.setattr(slurm, "_answer", answer)
    monkeypatch.setattr(slurm, "_begin", lambda words: answer(words) or SimpleNamespace(wait=lambda seconds: None))
    arrays: list[int] = []

    def submit(executor: object, array: list[Job]) -> list[str]:
        arrays.append(len(array))
        if len(arrays) > 1:
            raise FailedJobError("sbatch: error: Socket timed out on send/recv operation")
        return [f"100_{number}" for number in range(len(array))]

    monkeypatch.setattr(slurm, "_submit", submit)
    scheduler = slurm.Slurm().connect(RunOptions(tmp_path, 0), detach=False)
    loop = SchedulerLoop(scheduler, cells_of(tmp_path, 4), RunOptions(tmp_path, 0))
    with pytest.raises(UsageError, match="sbatch refused the jobs: sbatch: error: Socket timed out"):
        loop.submit()
    assert arrays == [2, 2]
    assert [words for words in asked if words[0] == "scancel"] == [
        ["scancel", "--quiet", f"--name={scheduler._name}", "100_0", "100_1", *["101_0"] * taken]  # type: ignore[attr-defined]
    ]


def test_how_a_job_ended_is_known_when_slurm_has_forgotten_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`MinJobAge` may be shorter than the time that a network file system hides the end of a cell."""
    scheduler = slurm.Slurm().connect(RunOptions(tmp_path, 0), detach=False)
    for queue in (
        "7_0 RUNNING None\n7_1 RUNNING None\n7_2 RUNNING None",
        "7_0 COMPLETED None\n7_1 CANCELLED None\n7_2 RUNNING None",
        "",
    ):
        monkeypatch.setattr(slurm, "_answer", lambda words, queue=queue: queue)
        scheduler.alive({"7_0", "7_1", "7_2"})
    assert scheduler.result("7_0") == JobResult(reason="COMPLETED", completed=True)
    assert scheduler.result("7_1") == JobResult(canceled=True, reason="CANCELLED")
    assert scheduler.result("7_2") == JobResult(), "it was running when it was last heard of"


@pytest.mark.parametrize(
    ("at_once", "living", "shares", "waits"),
    [
        (0, 3, [1000] * 3, [None] * 3),
        (1, 0, [1, 1, 1], [None, "afterany:1", "afterany:2"]),
        (2, 0, [1, 1, 1], [None, None, "afterany:1"]),
        (5, 0, [2, 2, 1], [None] * 3),
        (5, 3, [2, 2, 1], ["afterany:70:71"] * 3),
        (8, 3, [3, 3, 2], [None] * 3),
    ],
)
def test_arrays_share_the_limit_of_jobs_at_once(
    at_once: int, living: int, shares: list[int], waits: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five new jobs in three arrays, beside jobs that the folder has already."""
    updates: list[dict] = []
    without_submitit(monkeypatch, updates)
    queue = ["70_0 RUNNING None", "70_1 PENDING Priority", "71_0 RUNNING None", "69_0 COMPLETED None"]
    monkeypatch.setattr(slurm, "_answer", lambda words: "\n".join(queue[3 - living :]))
    monkeypatch.setattr(
        slurm, "_submit", lambda executor, array: [f"{len(updates)}_{number}" for number in range(len(array))]
    )
    scheduler = slurm.Slurm().connect(RunOptions(tmp_path, 0), detach=False)
    handles = scheduler.submit([Job(tmp_path, (cell.key,)) for cell in cells_of(tmp_path, 5)], at_once)
    assert [one for array in handles for one in array] == ["1_0", "1_1", "2_0", "2_1", "3_0"]
    assert [each["array_parallelism"] for each in updates] == shares
    assert [each["additional_parameters"].get("dependency") for each in updates] == waits


def test_a_job_has_the_gpus_of_the_trainer_of_its_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    updates: list[dict] = []
    without_submitit(monkeypatch, updates)
    tasks: list[slurm._Task] = []
    monkeypatch.setattr(slurm, "_submit", lambda executor, array: tasks.extend(array) or ["1_0"])
    config = CellConfig(
        method="clip", staleness=4, seed=0, task="arithmetic", model="m@0", device="cuda", trainer="trl(processes=8)"
    )
    cell = PlannedCell(config, "key", False, 1.0, 3, tmp_path / "m")
    ResultsFolder(tmp_path)
    scheduler = slurm.Slurm(gpus=8).connect(RunOptions(tmp_path, 0), detach=False)
    SchedulerLoop(scheduler, [cell], RunOptions(tmp_path, 0)).submit()
    assert updates[0]["gpus_per_node"] == 8
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3,4,5,6,7")  # as Slurm sets it in the job
    seen: list[str] = []

    def train(cell: PlannedCell, trainer: OutsideTrainer, *others: object) -> None:
        seen.append(_gpus(cell, trainer.ranks)["CUDA_VISIBLE_DEVICES"])
        raise UsageError("that is enough")

    monkeypatch.setattr(run_cell, "train_outside", train)
    assert run_job(tasks[0]._job, "1_0") == 1, "its cell has failed"
    assert seen == ["0,1,2,3,4,5,6,7"]


def test_a_dependency_of_the_user_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    updates: list[dict] = []
    without_submitit(monkeypatch, updates)
    monkeypatch.setattr(slurm, "_answer", lambda words: "70_0 RUNNING None")
    monkeypatch.setattr(slurm, "_submit", lambda executor, array: ["1_0"])
    scheduler = slurm.Slurm(options="dependency=afterok:5").connect(RunOptions(tmp_path, 0), detach=False)
    list(scheduler.submit([Job(tmp_path, (cell.key,)) for cell in cells_of(tmp_path, 1)], 1))
    assert updates[0]["additional_parameters"]["dependency"] == "afterok:5,afterany:70"


def test_a_dependency_that_cannot_be_joined_is_refused_before_anything_is_submitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_submitit(monkeypatch, [])
    scheduler = slurm.Slurm(options="dependency=afterok:5?afterok:6").connect(RunOptions(tmp_path, 0), detach=False)
    with pytest.raises(UsageError, match=r"a dependency with \? cannot be joined"):
        list(scheduler.submit([Job(tmp_path, ("key",))], 2))


@pytest.mark.parametrize(("value", "threads"), [("4,2", 4), ("3", 3), ("", 1), ("0", 1), ("many", 1)])
def test_threads_are_read_as_openmp_reads_them(value: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert _threads() == threads
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert _threads() == 1


@pytest.mark.parametrize(
    ("reasons", "said"),
    [
        (["Resources", "Priority", "Priority"], "squeue says: Priority (2), Resources (1); the cluster is busy"),
        (["Dependency", "Priority"], "they wait for others: nothing is wrong"),
        (["JobHeldUser"], "squeue says: JobHeldUser (1); held jobs wait until scontrol release"),
        (["Resources", "PartitionTimeLimit"], "PartitionTimeLimit may never change: press Ctrl-C, correct --launcher"),
        (["ReqNodeNotAvail, UnavailableNodes:n1"], "ReqNodeNotAvail, UnavailableNodes:n1 may never change"),
    ],
)
def test_why_jobs_of_slurm_do_not_start(
    reasons: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [f"7_{number} PENDING {reason}" for number, reason in enumerate(reasons)]
    monkeypatch.setattr(
        slurm, "_answer", lambda words: "\n".join([*jobs, "8_0 PENDING BadConstraints", "7_9 RUNNING x"])
    )
    scheduler = slurm.Slurm().connect(RunOptions(tmp_path, 0), detach=False)
    mine = scheduler.alive({f"7_{number}" for number in (*range(len(reasons)), 9)})
    assert said in scheduler.why_waiting(mine)
    assert scheduler.why_waiting({"7_9"}) == ""
