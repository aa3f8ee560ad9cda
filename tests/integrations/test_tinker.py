"""A real Tinker server trains: its log-probabilities, its steps against our own learner, lag, kills of either side."""

import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from patience import within
from tinker_server import TinkerServer, save_qwen3

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.cells.model_source import model_identity
from vcpo_bench.bench.cells.opening import open_policy, open_task
from vcpo_bench.bench.learners.tinker_api import service
from vcpo_bench.bench.learners.tinker_api.policy import TinkerPolicy
from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.running.run_cell import run_cell
from vcpo_bench.bench.tasks.text import text_task
from vcpo_bench.bench.training import learner as own_learner
from vcpo_bench.bench.training.build import build_learner, build_trainer
from vcpo_bench.bench.training.learner_step import LearnerStep
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.bench.trajectories import Trajectories
from vcpo_bench.methods import parse_method

RANK = 16
"""At this rank the scale of adapters is 2 both here (twice the rank) and there (32), and so they compare."""
AGREEMENT = 1e-5
"""Nats by which the log-probabilities of the server's sampler and of its learner may differ."""
METHODS = ("vcpo(baseline=group)", "clip", "vespo")
COLUMNS = ["step", "sampled_reward", "batch_reward", "grad_norm", "step_scale", "ess_ratio", "kl_mu_theta_k3"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_qwen3(tmp_path_factory.mktemp("models") / "qwen3")


@pytest.fixture(scope="module")
def server(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TinkerServer]:
    found = TinkerServer(model, tmp_path_factory.mktemp("server"))
    found.start()
    yield found
    found.kill()


@pytest.fixture(autouse=True)
def address(server: TinkerServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(service.URL_VARIABLE, server.url)


def config(model: Path, method: str = "clip", staleness: int = 0, **changes: Any) -> CellConfig:
    settings = {"seed": 0, "lr": 1e-2, "lr_warmup": 0, "prompts": 4, "responses": 8, "steps": 6, "max_response": 6}
    settings |= {"learner": f"tinker(rank={RANK})", "sampler": "tinker", "eval_every": 100} | changes
    task = text_task("arithmetic(terms=2,largest=9)").canonical
    return CellConfig(method=method, staleness=staleness, model=model_identity(str(model)), task=task, **settings)


def random_rewards(trainer: Trainer, update: int) -> Trajectories:
    """The next batch of a cell, with rewards that a random model has, too: coefficients of both signs."""
    batch = trainer.source.next_batch(update).batch
    generator = torch.Generator().manual_seed(update)
    reward = torch.randint(0, 2, batch.reward.shape, generator=generator).double()
    reward[:, :2] = torch.tensor([0.0, 1.0])
    values = {name: tensor for name, tensor in batch.tensors().items() if name != "reward"}
    return Trajectories(batch.index, reward=reward, **values)


def run(cell: CellConfig, model: Path, out: Path) -> str:
    """Train a cell through the store; returns its status."""
    (out / "cells").mkdir(parents=True, exist_ok=True)
    return run_cell(PlannedCell(cell, cell.key(1), False, 1.0, cell.steps, model), out / "cells", 0, lambda *_: None)


def steps_of(out: Path, cell: CellConfig) -> pd.DataFrame:
    return pd.read_parquet(out / "cells" / cell.key(1) / "steps.parquet")


def facts_of(out: Path, cell: CellConfig) -> dict[str, Any]:
    return json.loads((out / "cells" / cell.key(1) / "cell.json").read_text())


def read_adapters(server: TinkerServer, policy: TinkerPolicy, own: Policy) -> dict[str, torch.Tensor]:
    """The adapters that the server published last, under the names of our policy."""
    from safetensors.torch import load

    folder = server.folder / "checkpoints" / str(policy.trained.model_id) / "sampler_weights"
    newest = max(folder.glob("*.tar.gz"), key=lambda path: path.stat().st_mtime_ns)
    with tarfile.open(newest) as archive:
        (member,) = [each for each in archive.getmembers() if each.name.endswith("adapter_model.safetensors")]
        file = archive.extractfile(member)
        assert file is not None
        given = load(file.read())
    theirs = {name.rpartition("model.layers")[2]: tensor for name, tensor in given.items()}
    names = [name for name, _ in own.named_parameters(remove_duplicate=False) if "lora_" in name]
    assert len(names) == len(theirs)
    return {name: theirs[name.rpartition("model.layers")[2].replace(".default.weight", ".weight")] for name in names}


def share_inputs(policy: Any, adapters: dict[str, torch.Tensor]) -> None:
    """Share the first half of adapters that read the same input, as this server does, which fuses those layers."""
    for layer in policy.network.model.layers:
        attention, mlp = layer.self_attn, layer.mlp
        for first, other in (
            (attention.q_proj, attention.k_proj),
            (attention.q_proj, attention.v_proj),
            (mlp.gate_proj, mlp.up_proj),
        ):
            other.lora_A["default"].weight = first.lora_A["default"].weight
    shared = adapters.keys() - dict(policy.named_parameters()).keys()
    assert len(shared) == 3 * len(policy.network.model.layers)
    for name in shared:
        first = name.replace("k_proj", "q_proj").replace("v_proj", "q_proj").replace("up_proj", "gate_proj")
        assert torch.equal(adapters[name], adapters[first])


def test_log_probabilities_at_lag_0_are_those_of_the_learner_and_of_torch(model: Path) -> None:
    here = config(model, learner="torch", sampler="torch")
    own = build_learner(here, open_policy(here, open_task(here, model), model))
    with closing(build_trainer(config(model), start=model)) as trainer:
        batch = trainer.source.next_batch(0).batch
        served = trainer.learner.logp(batch)
    print("sampler and forward differ by", float((served - batch.behavior_logp).abs().max()))
    assert float((served - batch.behavior_logp).abs().max()) <= AGREEMENT
    assert float((own.logp(batch) - served).abs().max()) <= 1e-4


@pytest.mark.parametrize("method", METHODS)
def test_updates_are_those_of_our_own_learner_on_the_same_adapters(
    method: str, model: Path, server: TinkerServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four updates at lag 2 on the same batches, the server's adapters copied into ours at the start.

    Nothing is clipped, because the server does not. AdamW has an eps that keeps the rounding of gradients near zero
    from becoming whole steps. Compared: coefficients, gradient norms, log-probabilities; at the end the adapters.
    """
    monkeypatch.setattr(own_learner, "GRAD_CLIP", 1e9)
    settings = {"method": method, "staleness": 2, "lr": 1e-2, "optimizer": "adamw(eps=0.001)", "weight_decay": 0.1}
    here = config(model, **settings, learner="torch", sampler="torch", lora=RANK)
    policy = open_policy(here, open_task(here, model), model)
    with closing(build_trainer(config(model, **settings), start=model)) as trainer:
        assert isinstance(trainer.policy, TinkerPolicy)
        batch = random_rewards(trainer, 0)
        start = read_adapters(server, trainer.policy, policy)
        share_inputs(policy, start)
        policy.load_trained({name: start[name] for name in policy.trained_state()})
        own = build_learner(here, policy)
        for update in range(4):
            theirs, ours = trainer.learner.update(batch, update), own.update(batch, update)
            same(theirs, ours)
            batch = random_rewards(trainer, update + 1)  # the weights of this update are published
        moved = read_adapters(server, trainer.policy, policy)
    off = torch.cat([(moved[name] - now).flatten() for name, now in policy.trained_state().items()])
    far = torch.cat([(now - start[name]).flatten() for name, now in policy.trained_state().items()])
    print(method, "change of the adapters:", float(far.norm()), "difference:", float(off.norm()))
    assert float(far.norm()) > 0.1
    assert float(off.norm()) <= 1e-4 * float(far.norm())


def same(theirs: LearnerStep, ours: LearnerStep) -> None:
    """Two learners saw the same and did the same."""
    assert theirs.update is not None
    assert ours.update is not None
    largest = float(ours.update.coefficients.abs().max())
    assert float((theirs.update.coefficients - ours.update.coefficients).abs().max()) <= 1e-3 * largest
    assert theirs.step_scale == pytest.approx(ours.step_scale, rel=1e-3)
    assert theirs.grad_norm == pytest.approx(ours.grad_norm, rel=1e-3)
    assert float((theirs.logp - ours.logp).abs().max()) <= 1e-3


def test_coefficients_have_their_signs_and_sizes(model: Path) -> None:
    """Twice the coefficients, twice the gradient; the sign of each row decides where its probability goes."""
    with closing(build_trainer(config(model, lr=1e-3), start=model)) as trainer:
        policy = trainer.policy
        assert isinstance(policy, TinkerPolicy)
        batch = trainer.source.next_batch(0).batch
        before = policy.score(*batch.flat()).logp
        sign = torch.where(torch.arange(len(before)) % 2 == 0, 1.0, -1.0).unsqueeze(1)
        coefficients = torch.where(batch.flat()[2], sign / len(before), 0.0)
        once = policy.step(*batch.flat()[:3], before, coefficients, 0.0, 1e9)
        twice = policy.step(*batch.flat()[:3], before, 2 * coefficients, 0.0, 1e9)
        assert twice == pytest.approx(2 * once, rel=1e-4)
        for _ in range(8):
            now = policy.score(*batch.flat()).logp
            policy.step(*batch.flat()[:3], now, coefficients, 3e-3, 1e9)
        moved = (policy.score(*batch.flat()).logp - before).sum(1)
    assert float(moved[0::2].mean()) > 0 > float(moved[1::2].mean())


@pytest.mark.parametrize("staleness", [0, 4])
def test_the_realized_lag_is_the_one_asked_for(staleness: int, model: Path, tmp_path: Path) -> None:
    cell = config(model, "vcpo(baseline=group)", staleness, record="diagnostics")
    assert run(cell, model, tmp_path) == "completed", facts_of(tmp_path, cell)["error"]
    lags = pd.read_parquet(tmp_path / "cells" / cell.key(1) / "lags.parquet")
    steps = steps_of(tmp_path, cell)
    assert lags["step"].tolist() == steps["step"].tolist()  # one lag in each update
    assert lags["lag"].tolist() == [min(step, staleness) for step in steps["step"]]
    assert set(lags["trajectories"]) == {32}
    fresh = steps["ess_ratio"] > 1 - 1e-6
    moving = (steps["sampled_reward"].cumsum() > 0).any()
    assert fresh.all() if staleness == 0 else fresh[0] and (not moving or not fresh.all())


def test_killed_on_either_side_a_cell_resumes_where_it_was(
    model: Path, server: TinkerServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command is killed, then the server of the resumed cell; in the end the numbers are those of a quiet run."""
    cell = config(model, "vespo", 2, steps=6)
    assert run(cell, model, tmp_path / "quiet") == "completed"
    code = (
        "import sys, json; from pathlib import Path; sys.path.insert(0, sys.argv[1]); import test_tinker as t; "
        "from vcpo_bench.bench.cells.config import CellConfig; "
        "t.run(CellConfig(**json.loads(sys.argv[2])), Path(sys.argv[3]), Path(sys.argv[4]))"
    )
    places = [str(Path(__file__).parent), cell.model_dump_json(), str(model), str(tmp_path / "loud")]
    path = os.pathsep.join([str(Path(__file__).parents[1] / "helpers"), os.environ["PYTHONPATH"]])
    environment = os.environ | {"VCPO_BENCH_CHECKPOINT_SECONDS": "0", "PYTHONPATH": path}
    process = subprocess.Popen([sys.executable, "-c", code, *places], env=environment)
    partial = tmp_path / "loud" / "cells" / f"{cell.key(1)}.partial"
    wait_for(lambda: any(partial.glob("checkpoint*")) or process.poll() is not None)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    monkeypatch.setattr("vcpo_bench.bench.running.run_cell.CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(service, "PATIENCE_SECONDS", 2.0)
    kill_at(server, 4, monkeypatch)
    assert run(cell, model, tmp_path / "loud") == "error"
    monkeypatch.undo()
    monkeypatch.setenv(service.URL_VARIABLE, server.url)
    facts = facts_of(tmp_path / "loud", cell)
    assert "tinker_server_away" in facts["reason"]
    assert "the same command resumes" in facts["reason"]
    assert 0 < facts["steps_done"] <= 4
    server.start()
    assert run(cell, model, tmp_path / "loud") == "completed"
    quiet, loud = (steps_of(tmp_path / name, cell)[COLUMNS] for name in ("quiet", "loud"))
    pd.testing.assert_frame_equal(quiet, loud, rtol=1e-4, atol=1e-6)


def kill_at(server: TinkerServer, update: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kill the server as soon as a cell makes this update."""
    step = TinkerPolicy.step

    def killing(self: TinkerPolicy, *inputs: Any) -> float:
        if self.version == update:
            server.kill()
        return step(self, *inputs)

    monkeypatch.setattr(TinkerPolicy, "step", killing)


def wait_for(happened: Any, seconds: float = 300.0) -> None:
    limit = time.monotonic() + within(seconds)
    while not happened():
        assert time.monotonic() < limit
        time.sleep(0.2)


def test_no_server_is_one_line(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(service.URL_VARIABLE, "http://someone:secret@127.0.0.1:9")
    cell = config(model)
    assert run(cell, model, tmp_path) == "error"
    facts = facts_of(tmp_path, cell)
    assert "--url http://127.0.0.1:9: no Tinker server answers" in facts["reason"]
    assert "secret" not in json.dumps(facts)


def test_methods_named_in_the_study_can_be_served() -> None:
    assert all("score_norm_sq" not in parse_method(method).needs for method in METHODS)
