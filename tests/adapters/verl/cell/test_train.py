"""The driver of a cell inside verl, with a stand-in for verl: it follows, takes checkpoints over, resumes and fails."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import stand_in_verl

from vcpo_bench.adapters.verl.cell import train as driver
from vcpo_bench.adapters.verl.cell.log import read_lines
from vcpo_bench.adapters.verl.cell.processes import RayJob
from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.trainers.job import TABLES, Progress, TrainerJob, carry_out
from vcpo_bench.bench.training.build import build_recorder
from vcpo_bench.errors import UsageError
from vcpo_bench.records import EVALS_FILE, LAGS_FILE, STEPS_FILE

CONFIG = {"method": "clip", "staleness": 2, "seed": 0, "task": "arithmetic", "model": "tiny@0", "device": "cuda"}
SIZE = {"prompts": 2, "responses": 2, "steps": 5, "eval_every": 2, "eval_prompts": 4, "trainer": "verl"}
UPDATES = 5


@pytest.fixture(autouse=True)
def _stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", stand_in_verl.install(tmp_path / "packages"))
    lengths = SimpleNamespace(prompt_length=5, max_response=6)
    monkeypatch.setattr(driver, "bound_task", lambda job: lengths)
    monkeypatch.setattr(driver, "write_prompts", lambda *given: None)


def job_in(folder: Path, resume: str = "") -> Path:
    folder.mkdir()
    job = TrainerJob(key="k", config=CONFIG | SIZE, updates=UPDATES, model="tiny", keep_every=2, resume=resume)
    return job.write(folder)


def columns(folder: Path) -> dict[str, Any]:
    recorder = build_recorder(CellConfig(**(CONFIG | SIZE)))
    recorder.read(folder)
    return {name: table.columns for name, table in recorder.tables.items()}


def test_a_cell_ends_with_the_tables_and_checkpoints_of_verl(tmp_path: Path) -> None:
    job = job_in(tmp_path / "job")
    carry_out(driver.train, job)
    tables = columns(job.parent / TABLES)
    steps, lags = tables[STEPS_FILE], tables[LAGS_FILE]
    assert steps["step"] == [0, 1, 2, 3, 4]
    assert steps["batch_reward"] == [step / 20 for step in range(1, UPDATES + 1)]
    assert steps["lag_max"] == [0, 1, 2, 2, 2]
    assert steps["version_oldest"] == [0, 0, 0, 1, 2]
    assert steps["ess_ratio"] == steps["sampled_reward"] == [None] * UPDATES, "named holes"
    assert (lags["lag"], lags["trajectories"]) == ([0, 1, 2, 2, 2], [4] * UPDATES)
    assert (tables[EVALS_FILE]["step"], tables[EVALS_FILE]["sampled_reward"]) == ([0, 2, 4], [0.0, 0.2, 0.4])
    told = Progress.read(job.parent)
    assert (told.step, told.status, told.checkpoint, told.error) == (UPDATES, "completed", 4, "")
    for step in (2, 4):
        taken = job.parent / f"checkpoint-{step}"
        assert (taken / f"global_step_{step}" / "weights").read_text() == f"after {step}"
        assert columns(taken)[STEPS_FILE]["step"] == list(range(step))


def test_a_killed_run_is_an_error_and_goes_on_from_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calm, job = job_in(tmp_path / "calm"), job_in(tmp_path / "killed")
    carry_out(driver.train, calm)
    monkeypatch.setenv("STAND_IN_DIES", "4")
    with pytest.raises(RuntimeError, match="verl ended after 3 of 5 updates"):
        carry_out(driver.train, job)
    assert Progress.read(job.parent).error.endswith("(exit code -9)")
    again = job_in(tmp_path / "again", str(job.parent / "checkpoint-2"))
    carry_out(driver.train, again)
    assert columns(again.parent / TABLES) == columns(calm.parent / TABLES)


def test_a_cluster_that_does_not_answer_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(address: str) -> None:
        raise ConnectionError(f"Failed to connect to Ray at address: {address}.")

    monkeypatch.setitem(sys.modules, "ray.job_submission", SimpleNamespace(JobSubmissionClient=refuse))
    monkeypatch.setitem(SIZE, "trainer", "verl(address=http://head:8265)")
    job = job_in(tmp_path / "job")
    with pytest.raises(UsageError, match="no Ray cluster answers at http://head:8265"):
        carry_out(driver.train, job)
    assert Progress.read(job.parent).usage, "trying again cannot help"


def test_half_a_line_waits_and_what_is_not_finite_is_nan(tmp_path: Path) -> None:
    path = tmp_path / "log"
    assert read_lines(path, 0) == ([], 0)
    line = json.dumps({"step": 1, "data": {"a": 1, "b": None, "c": "text", "d": True}}) + "\n"
    path.write_text(line + line[:9])
    (found,), offset = read_lines(path, 0)
    assert found[0] == 1
    assert found[1]["a"] == 1.0
    assert found[1]["b"] != found[1]["b"]
    assert found[1].keys() == {"a", "b"}
    assert offset == len(line)
    assert read_lines(path, offset) == ([], offset)


class Cluster:
    """Ray's jobs by their names, as `JobSubmissionClient` gives them."""

    def __init__(self, *running: str) -> None:
        self.jobs = dict.fromkeys(running, "RUNNING")
        self.entrypoints: list[str] = []

    def list_jobs(self) -> Sequence[Any]:
        return [SimpleNamespace(submission_id=name, status=self.get_job_status(name)) for name in self.jobs]

    def submit_job(self, entrypoint: str, submission_id: str) -> None:
        self.jobs[submission_id] = "RUNNING"
        self.entrypoints.append(entrypoint)

    def stop_job(self, name: str) -> None:
        self.jobs[name] = "STOPPED"

    def get_job_status(self, name: str) -> Any:
        value = self.jobs[name]
        return SimpleNamespace(value=value, is_terminal=lambda: value != "RUNNING")


def test_a_ray_job_replaces_one_that_a_killed_driver_has_left() -> None:
    cluster = Cluster("vcpo-bench-k-0", "vcpo-bench-other-0")
    job = RayJob(cluster, "k", ['a="b c"'])
    assert cluster.jobs["vcpo-bench-k-0"] == "STOPPED"
    assert cluster.jobs["vcpo-bench-other-0"] == "RUNNING"
    assert cluster.entrypoints == ["python -m verl.trainer.main_ppo 'a=\"b c\"'"]
    assert not job.ended()
    (name,) = (name for name in cluster.jobs if name not in ("vcpo-bench-k-0", "vcpo-bench-other-0"))
    job.stop()
    assert cluster.jobs[name] == "STOPPED"
    assert job.ended()
    assert job.ending.endswith("STOPPED")
