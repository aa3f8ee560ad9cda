"""Cells of `--trainer verl`: verl takes their configuration, reads their prompts, and its log becomes their tables."""

import json
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# verl itself is imported by the helpers, with our plugin
pytest.importorskip("transfer_queue", reason="runs in .ci/integrations verl")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

import hf_models
import ray
import stand_in_verl
import verl_cpu  # noqa: F401
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf
from ray.job_submission import JobSubmissionClient
from verl.trainer.constants_ppo import get_ppo_ray_runtime_env
from verl.trainer.ppo.utils import need_critic, need_reference_policy
from verl.trainer.ppo.v1 import get_trainer_cls
from verl.trainer.ppo.v1.replay_buffer import ReplayBufferAsync
from verl.utils.config import omega_conf_to_dataclass, validate_config
from verl.utils.import_utils import load_extern_object
from verl.utils.tokenizer.continuous_token import ContinuousTokenBuilder
from verl.utils.tracking import FileLogger
from verl_runs import config as verl_config
from verl_runs import save_model, start_ranks, steps, trainer, worker

from vcpo_bench.adapters.verl.cell.prompts import HELD_OUT, TEMPLATE, TRAIN, write_prompts
from vcpo_bench.adapters.verl.cell.settings import METRICS
from vcpo_bench.adapters.verl.cell.train import VerlFollower, arguments, bound_task
from vcpo_bench.bench.cells.grid import PlannedCell, plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.running.cell.run_cell import run_cell
from vcpo_bench.bench.running.cell.train_outside import planned_job
from vcpo_bench.bench.trainers.job import Progress, TrainerJob
from vcpo_bench.files.checksums import verify_sealed
from vcpo_bench.records import EVALS_FILE, LAGS_FILE, STEPS_FILE
from vcpo_bench.records.settings import CellSettings

PROMPTS, RESPONSES, UPDATES = 4, 4, 4


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hf_models.save(tmp_path_factory.mktemp("model") / "tiny")


def cell_of(model: Path, expression: str, method: str = "vespo", lag: int = 0, **settings: Any) -> PlannedCell:
    size = {"prompts": PROMPTS, "responses": RESPONSES, "steps": UPDATES, "eval_every": 2, "eval_prompts": 8}
    spec = GridSpec(
        methods=(method,),
        staleness=(lag,),
        seeds=(3,),
        tasks=(hf_models.TASK,),
        lrs=(1e-2,),
        settings=CellSettings(**(size | {"trainer": expression, "lr_warmup": 2} | settings)),
        controls=False,
        model=str(model),
        device="cuda",
    )
    (cell,) = plan_grid(spec)
    return cell


def job_of(*cell: Any, **settings: Any) -> TrainerJob:
    return planned_job(cell_of(*cell, **settings))


def composed(job: TrainerJob, folder: Path) -> Any:
    with initialize_config_module("verl.trainer.config", version_base=None):
        return compose("ppo_trainer", overrides=arguments(job, folder))


@pytest.mark.parametrize(
    ("trainer", "method", "lag", "mode"),
    [
        ("verl", "vespo", 0, "vcpo_bench"),
        ("verl", "clip", 4, "separate_async"),
        ("verl(lag=colocate)", "vespo+kl(anchor=reference,beta=0.1)", 4, "vcpo_bench_colocate_async"),
        ("verl(lag=exact,gpus=2)", "vcpo(baseline=group)", 4, "vcpo_bench"),
    ],
)
def test_verl_takes_the_configuration(
    tmp_path: Path, model: Path, trainer: str, method: str, lag: int, mode: str
) -> None:
    job = job_of(model, trainer, method, lag, micro_tokens=0 if trainer == "verl" else 2048)
    made = composed(job, tmp_path)
    assert made.trainer.v1.trainer_mode == mode
    validate_config(made, need_reference_policy(made), need_critic(made))
    actor = omega_conf_to_dataclass(made.actor_rollout_ref.actor)
    rates = actor.optim
    assert list(rates.betas) == [0.9, 0.999]
    assert rates.override_optimizer_config["eps"] == 1e-8
    run = get_trainer_cls(mode)(made)
    assert run.parameter_sync_step == 1
    if isinstance(run.replay_buffer, ReplayBufferAsync):
        assert run.replay_buffer.max_off_policy_threshold == lag + 1
    elif lag:
        assert run.replay_buffer.lag == lag
    environment = OmegaConf.merge(get_ppo_ray_runtime_env(made), made.ray_kwargs.ray_init.runtime_env)
    logged = Path(environment.env_vars.VERL_FILE_LOGGER_PATH)
    assert logged == tmp_path / METRICS


def test_verl_reads_the_tokens_of_our_loop_and_gives_its_rewards(tmp_path: Path, model: Path) -> None:
    job = job_of(model, "verl")
    made, task = composed(job, tmp_path), bound_task(job)
    write_prompts(task, 3, PROMPTS, UPDATES, 8, tmp_path)
    task.tokenizer.chat_template = TEMPLATE
    builder = ContinuousTokenBuilder(task.tokenizer)
    function = made.reward.custom_reward_function
    score = load_extern_object(function.path, function.name)
    batches = [task.training_prompts(3, batch, PROMPTS) for batch in range(UPDATES)]
    wanted = {TRAIN: [row for batch in batches for row in batch], HELD_OUT: list(task.held_out(8))}
    for name, rows in wanted.items():
        lines = [json.loads(line) for line in (tmp_path / name).read_text().splitlines()]
        assert len(lines) == len(rows)
        for line, row in zip(lines, rows, strict=True):
            ids = builder.build_initial_tokens(line["prompt"])
            assert ids == row[len(row) - len(ids) :].tolist()
            truth, answer = line["reward_model"]["ground_truth"], task.source.demonstration(task.item_of(row))
            assert score(data_source="cell", solution_str=answer, ground_truth=truth, extra_info={}) == 1.0
            assert score(data_source="cell", solution_str=f"{answer}0", ground_truth=truth, extra_info={}) == 0.0


def test_the_log_of_verl_becomes_the_tables(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_ranks()
    own = tmp_path_factory.mktemp("words")
    run = trainer(verl_config(tmp_path, "vespo+ess", "vcpo_bench"), worker(save_model(own), 4), spread=3)
    monkeypatch.setenv("VERL_FILE_LOGGER_PATH", str(tmp_path / METRICS))
    logger = FileLogger("", "")
    logger.log({"val-core/cell/acc/mean@1": 0.25}, 0)
    lags: list[list[int]] = []
    for step in range(1, UPDATES + 1):
        (numbers,) = steps(run, 1)
        lags.append((run.rows.version[~run.rows.reward.isnan()]).sub(step - 1).neg().tolist())
        logger.log(numbers | ({"val-core/cell/acc/mean@1": 0.5} if step % 2 == 0 else {}), step)
    logger.finish()
    follower = VerlFollower(job_of(model, "verl(lag=colocate)", "vespo+ess", 2), tmp_path)
    follower.look()
    tables = follower.recorder.tables
    made, found = tables[STEPS_FILE].columns, tables[LAGS_FILE].columns
    assert made["step"] == list(range(UPDATES))
    assert follower.status == "completed"
    assert Progress.read(tmp_path).step == UPDATES
    for name in ("batch_reward", "ess_ratio", "log_weight_q50", "entropy", "grad_norm", "step_scale", "length_mean"):
        assert all(isinstance(value, float) and value == value for value in made[name]), name
    assert made["lag_max"] == [max(one) for one in lags]
    assert made["version_oldest"] == [step - max(one) for step, one in enumerate(lags)]
    counted = {(step, lag): one.count(lag) for step, one in enumerate(lags) for lag in set(one)}
    whole = {key: round(count / len(lags[key[0]]) * PROMPTS * RESPONSES) for key, count in counted.items()}
    assert dict(zip(zip(found["step"], found["lag"], strict=True), found["trajectories"], strict=True)) == whole
    assert tables[EVALS_FILE].columns["step"] == [0, 2, 4]
    assert tables[EVALS_FILE].columns["sampled_reward"] == [0.25, 0.5, 0.5]


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What processes import as verl dies before its fifth step."""
    monkeypatch.setenv("PYTHONPATH", stand_in_verl.install(tmp_path / "packages"))
    monkeypatch.setenv(stand_in_verl.DIES, "5")


@pytest.fixture
def dashboard(stand_in: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A Ray of this machine, whose jobs find the stand-in."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = _start_ray(port)
    if started is None:
        started = _start_ray(port)
    yield f"http://{started.dashboard_url}"
    ray.shutdown()


def _start_ray(port: int) -> Any:
    """A Ray with a dashboard; None: it did not come up within the thirty seconds that it gives itself."""
    try:
        return ray.init(address="local", num_cpus=1, include_dashboard=True, dashboard_port=port)
    except Exception as problem:
        if "timed out during startup" not in str(problem):
            raise
        ray.shutdown()
        return None


def carry_out(cell: PlannedCell, out: Path) -> None:
    """Run a cell whose verl dies once, and look at what it leaves."""
    events: list[tuple[Any, ...]] = []
    out.mkdir()
    status = run_cell(cell, out, 2, lambda *event: events.append(event))
    assert status == "completed", (out / cell.key / "cell.json").read_text()
    assert json.loads((out / cell.key / "cell.json").read_text())["steps_done"] == 6
    (said,) = (str(event[1]) for event in events if event[0] == "message")
    assert "its processes died" in said
    for kept, step in zip(sorted((out / cell.key / "checkpoints").iterdir()), (2, 4), strict=True):
        assert verify_sealed(kept / "state.json")["step"] == step
        assert (kept / f"global_step_{step}" / "weights").read_text() == f"after {step}"


def test_a_killed_verl_is_started_again_from_its_checkpoint(tmp_path: Path, model: Path, stand_in: None) -> None:
    carry_out(cell_of(model, "verl", lag=2, steps=6), tmp_path / "cells")


def test_a_cell_is_a_job_of_a_ray_cluster(tmp_path: Path, model: Path, dashboard: str) -> None:
    cell = cell_of(model, f"verl(address={dashboard})", lag=2, steps=6)
    client = JobSubmissionClient(dashboard)
    client.submit_job(entrypoint="sleep 600", submission_id=f"vcpo-bench-{cell.key}-left")
    carry_out(cell, tmp_path / "cells")
    ended = [job.status.value for job in client.list_jobs() if cell.key in (job.submission_id or "")]
    assert sorted(ended) == ["FAILED", "STOPPED", "SUCCEEDED"]
