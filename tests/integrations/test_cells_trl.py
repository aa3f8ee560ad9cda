"""Cells trained by the real TRL: what they share with the own loop, several processes, kills, and lags."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

pytest.importorskip("trl", reason="runs in .ci/integrations trl_cells")
import digits_task
import hf_models
from launched_grids import finish, half_way, wait_for
from torch.optim.optimizer import register_optimizer_step_pre_hook
from transformers import TrainerCallback

from vcpo_bench.adapters.trl.cell.cell_run import CellRun
from vcpo_bench.adapters.trl.cell.cell_trainer import cell_callback
from vcpo_bench.adapters.trl.cell.rows import Sampled, trajectories
from vcpo_bench.adapters.trl.cell.train import trainer_of
from vcpo_bench.bench.cells.grid import PlannedCell, plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.cells.opening import open_policy
from vcpo_bench.bench.running.cell.train_outside import planned_job
from vcpo_bench.bench.training.build import build_learner
from vcpo_bench.methods import load_plugin
from vcpo_bench.records.settings import CellSettings

PLUGIN = Path(digits_task.__file__)
SIZE = {"prompts": 4, "responses": 4, "steps": 6, "eval_every": 3, "eval_prompts": 8}
TRL = "trl(processes=2)"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hf_models.save(tmp_path_factory.mktemp("model") / "tiny")


def planned(model: Path, method: str, lag: int, **settings: Any) -> PlannedCell:
    load_plugin(PLUGIN)
    spec = GridSpec(
        methods=(method,),
        staleness=(lag,),
        seeds=(0,),
        tasks=("digits",),
        lrs=(1e-2,),
        settings=CellSettings(**(SIZE | {"trainer": "trl", "lr_warmup": 2, "weight_decay": 0.1} | settings)),
        controls=False,
        model=str(model),
    )
    (cell,) = plan_grid(spec)
    return cell


class Watch(TrainerCallback):  # type: ignore[misc]
    """What every update was given, and its gradient as the optimizer sees it."""

    def __init__(self, trainer: Any) -> None:
        self.trainer, self.batches = trainer, list[Any]()

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        run = self.trainer.cell
        sampled = Sampled(*self.trainer._seen, 0.0, 0.0, 0.0, 0.0)
        self.batches.append(trajectories(self.trainer.rows, sampled, run.prompts.tensor, run.config.prompts))


@pytest.fixture
def gradients() -> Iterator[list[torch.Tensor]]:
    """The gradient of every step that an optimizer takes."""
    found: list[torch.Tensor] = []

    def note(optimizer: Any, *_: Any) -> None:
        parameters = [one for group in optimizer.param_groups for one in group["params"] if one.grad is not None]
        found.append(torch.cat([one.grad.flatten().clone() for one in parameters]))

    handle = register_optimizer_step_pre_hook(note)
    yield found
    handle.remove()


@pytest.mark.parametrize(
    ("method", "lag", "settings"),
    [
        ("vcpo", 2, {}),
        ("clip", 0, {}),
        ("vespo", 2, {"micro_tokens": 64, "record": "diagnostics"}),
        ("vcpo", 2, {"lora": 4}),
    ],
)
def test_the_own_loop_makes_the_same_updates(
    tmp_path: Path, model: Path, gradients: list[torch.Tensor], method: str, lag: int, settings: dict[str, Any]
) -> None:
    cell = planned(model, method, lag, **settings)
    run = CellRun(planned_job(cell))
    trainer = trainer_of(run, tmp_path)
    watch = Watch(trainer)
    trainer.add_callback(cell_callback(trainer, tmp_path))
    trainer.add_callback(watch)
    trainer.train()
    theirs, end = list(gradients), {name: value.clone() for name, value in run.policy.network.state_dict().items()}
    gradients.clear()

    policy = open_policy(run.config, run.task, model)
    learner = build_learner(run.config, policy)
    steps = pd.DataFrame(run.recorder.tables["steps.parquet"].columns)
    for update, batch in enumerate(watch.batches):
        assert torch.equal(batch.prompts, run.task.training_prompts(0, update, 4)), "prompts are those of the own loop"
        assert batch.oldest().unique().tolist() == [max(update - lag, 0)]
        done = learner.update(batch, update)
        row = steps.iloc[update]
        assert row["lag_min"] == row["lag_max"] == min(update, lag)
        assert row["grad_norm"] == pytest.approx(done.made.norm, rel=1e-3)
        assert row["step_scale"] == pytest.approx(done.made.scale, rel=1e-3)
        assert row["lr"] == pytest.approx(learner.rate(update) * done.made.scale, rel=1e-3)
    assert [len(one) for one in (theirs, gradients)] == [6, 6]
    first, own = theirs[0], gradients[0]
    assert float((first - own).norm() / own.norm()) < 1e-5
    worst = max(float((a - b).norm() / b.norm()) for a, b in zip(theirs, gradients, strict=True))
    assert worst < 1e-3, "rounding grows where weights have drifted apart, and no further"
    apart = max(float((end[name] - value).abs().max()) for name, value in policy.network.state_dict().items())
    assert apart < 1e-4
    assert steps["batch_reward"].tolist() == [pytest.approx(float(batch.reward.mean())) for batch in watch.batches]


def start(out: Path, model: Path, *more: str) -> subprocess.Popen[str]:
    size = [text for name, value in SIZE.items() for text in (f"--{name.replace('_', '-')}", str(value))]
    grid = [
        "--methods",
        "vcpo",
        "--staleness",
        "2",
        "--seeds",
        "1",
        "--task",
        "digits",
        "--no-controls",
        "--lr",
        "1e-2",
    ]
    command = ["run", *grid, *size, "--model", str(model), "--plugin", str(PLUGIN), "--out", str(out), "--jobs", "1"]
    environment = {**os.environ, "VCPO_BENCH_CHECKPOINT_SECONDS": "0", "VCPO_BENCH_LEASE_SECONDS": "12"}
    return subprocess.Popen(
        [sys.executable, "-m", "vcpo_bench", *command, "--trainer", TRL, "--record", "diagnostics", *more],
        env=environment,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def ranks(out: Path) -> dict[int, int]:
    """Processes that train cells of a folder: rank to process number."""
    found = {}
    for folder in Path("/proc").iterdir():
        try:
            command = (folder / "cmdline").read_bytes().split(b"\0")
            if b"vcpo_bench.adapters.trl.cell.train" not in command or str(out).encode() not in b" ".join(command):
                continue
            variables = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        found |= {int(one.partition(b"=")[2]): int(folder.name) for one in variables if one.startswith(b"RANK=")}
    return found


def tables(out: Path) -> dict[str, pd.DataFrame]:
    (folder,) = (path.parent for path in (out / "cells").glob("*/cell.json"))
    read = {path.stem: pd.read_parquet(path) for path in sorted(folder.glob("*.parquet"))}
    return {name: one[[column for column in one if not column.startswith("seconds")]] for name, one in read.items()}


def test_two_processes_are_killed_and_end_with_the_same_tables(tmp_path: Path, model: Path) -> None:
    calm, killed = tmp_path / "calm", tmp_path / "killed"
    process = start(killed, model)
    wait_for("a checkpoint of update 2", lambda: half_way(killed, 2) and len(ranks(killed)) == 2)
    os.kill(ranks(killed)[1], signal.SIGKILL)
    gone = set(ranks(killed).values())
    wait_for("a checkpoint of new processes", lambda: half_way(killed, 4) and not gone & set(ranks(killed).values()))
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    wait_for("the processes follow their worker", lambda: not ranks(killed))
    assert not list((killed / "cells").glob("*[!l]/cell.json")), "it was killed before its end"
    finish(start(killed, model))
    finish(start(calm, model))
    wanted, got = tables(calm), tables(killed)
    assert {"steps", "evals", "lags", "samples", "episodes"} <= wanted.keys() == got.keys()
    for name, table in wanted.items():
        pd.testing.assert_frame_equal(got[name], table, rtol=1e-4, atol=1e-6, obj=name)
    assert wanted["steps"]["lag_max"].tolist() == wanted["steps"]["lag_min"].tolist() == [0, 1, 2, 2, 2, 2]
    assert wanted["evals"]["step"].tolist() == [0, 3, 6]
    assert np.isfinite(wanted["steps"][["ess_ratio", "entropy", "grad_norm", "batch_reward"]]).all(axis=None)
    cell = json.loads(next((calm / "cells").glob("*/cell.json")).read_text())
    assert (cell["status"], cell["steps_done"], cell["config"]["trainer"]) == ("completed", 6, TRL)
