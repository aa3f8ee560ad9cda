"""A real vLLM engine in this process: exact log-probabilities after every push, exact lag, restarts, agreement."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import torch
from patience import within
from vllm_models import TOLERANCE, Watched, command_environment, config, save_model

from vcpo_bench.bench.cells.model_source import default_task, model_folder
from vcpo_bench.bench.cells.opening import open_policy, open_sampler, open_task
from vcpo_bench.bench.machine.gpu_checks import vllm_in_process
from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.policies.hf.policy import CausalPolicy
from vcpo_bench.bench.streams import uniforms
from vcpo_bench.bench.tasks import Task
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.imitation_hf import warm_up_model
from vcpo_bench.bench.trajectories import Responses, Rollout, Trajectories

COUNTDOWN = "countdown(largest=9,numbers=2,style=bare,target=30)"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tied, as small models are: the sampler unties it."""
    return save_model(tmp_path_factory.mktemp("models") / "tied", tied=True)


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that solves about a third of its task."""
    folder = tmp_path_factory.mktemp("models") / "warm"
    warm_up_model(COUNTDOWN, folder, new="llama(300k,head=32)")
    return folder


@pytest.mark.parametrize("staleness", [0, 4])
def test_after_every_push_the_engine_says_what_the_learner_says(model: Path, staleness: int) -> None:
    cell = Watched(model, "fifo", staleness)
    for update in range(7):
        batch = cell.feed()
        expected = max(0, update - staleness)
        assert batch.version[batch.mask].unique().tolist() == [expected]  # as the engine itself stamped them
        assert cell.error(batch, expected) < TOLERANCE
    cell.trainer.close()


def test_in_flight_read_again(model: Path) -> None:
    cell = Watched(model, "inflight(cache=recompute)", 2)
    for update in range(5):
        batch = cell.feed()
        versions = batch.version[batch.mask].unique().tolist()
        assert versions == list(range(max(0, update - 2), update + 1))
        assert all(cell.error(batch, version) < TOLERANCE for version in versions)
    cell.trainer.close()


def hybrid(cell: Watched, batch: Trajectories) -> torch.Tensor:
    """Log-probabilities of responses whose weights changed on a cache that was kept, one token at a time: [B, T]."""
    policy: Any = cell.trainer.policy
    prompts, responses, *_ = batch.flat()
    versions = batch.version.flatten(0, 1)
    now = {name: tensor.clone() for name, tensor in policy.trained_state().items()}
    found = torch.zeros(responses.shape)
    for row in range(len(responses)):
        prompt = prompts[row // batch.responses.shape[1]]
        fed, cache = prompt[policy.real(prompt[None])[0]][None], None
        for place in range(responses.shape[1]):
            policy.load_trained(cell.past[int(versions[row, place])])
            with torch.no_grad():
                out = policy.network(input_ids=fed, past_key_values=cache, use_cache=True)
            cache, fed = out.past_key_values, responses[row, place][None, None]
            found[row, place] = out.logits[0, -1].log_softmax(0)[fed[0, 0]]
    policy.load_trained(now)
    return found


def test_in_flight_on_the_cache_of_the_old_weights(model: Path) -> None:
    cell = Watched(model, "inflight", 2)
    for update in range(4):
        batch = cell.feed()
        assert batch.version[batch.mask].unique().tolist() == list(range(max(0, update - 2), update + 1))
    difference = (hybrid(cell, batch) - batch.behavior_logp.flatten(0, 1))[batch.mask.flatten(0, 1)]
    assert float(difference.abs().max()) < TOLERANCE
    assert cell.error(batch, 3) > 0.01  # which no single policy reproduces
    cell.trainer.close()


def test_the_same_cell_again(model: Path) -> None:
    batches = []
    for _ in range(2):
        cell = Watched(model, "fifo", 0)
        batches.append(cell.feed())
        cell.trainer.close()
    assert torch.equal(batches[0].responses, batches[1].responses)


def test_training_at_lag_0_has_weights_of_one(warm: Path) -> None:
    trainer = build_trainer(config(warm, task=COUNTDOWN, method="vcpo", lr=1e-3, length=0), start=warm)
    for _ in range(3):
        _, ess = trainer.advance()
        assert ess == pytest.approx(1, abs=1e-6)
    trainer.close()


def test_a_released_model_is_sampled_and_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with monkeypatch.context() as online:
        online.delenv("HF_HUB_OFFLINE", raising=False)
        folder = model_folder.__wrapped__("smollm2")
    cell = config(folder, task=default_task("smollm2"), method="vcpo", lr=1e-5, length=0, prompts=2)
    with closing(build_trainer(cell, start=folder)) as trainer:
        start = [weight.detach().clone() for weight in trainer.policy.trainable()]
        for _ in range(3):
            _, ess = trainer.advance()
            assert ess == pytest.approx(1, abs=1e-4)  # the engine holds what the learner does
        assert any(not torch.equal(*pair) for pair in zip(start, trainer.policy.trainable(), strict=True))


def sampled(policy: CausalPolicy, task: Task, external: Any, batch: int, prompts: int) -> tuple[torch.Tensor, Rollout]:
    """Prompts and responses from an engine, or from the policy where it is None."""
    asked = task.training_prompts(0, 1000 + batch, prompts)
    noise = torch.from_numpy(uniforms(0, "agreement", batch, prompts * 8, task.max_response))
    if external is None:
        return asked, policy.sample(Draw(asked, noise, task.eos))
    return asked, external.generate(asked, noise, task.eos)


def opened(folder: Path, sampler: str, prompts: int) -> tuple[CausalPolicy, Task, Any]:
    cell = config(folder, task=COUNTDOWN, sampler=sampler, length=0, prompts=prompts, responses=8)
    task = open_task(cell, folder)
    policy: Any = open_policy(cell, task, folder)
    external = open_sampler(cell, task, policy)
    assert external is not None
    external.set_weights(policy.named_parameters(), 0)
    return policy, task, external


def test_it_agrees_with_the_torch_sampler_on_4000_completions(warm: Path) -> None:
    policy, task, engine = opened(warm, "vllm", 50)
    means = []
    for external in (None, engine):
        rewards = []
        for batch in range(10):
            asked, rollout = sampled(policy, task, external, batch, 50)
            rewards.append(task.reward(asked, rollout.responses, rollout.mask).view(-1, 8).mean(1))
        means.append(torch.cat(rewards))
    difference = means[1] - means[0]
    half = 1.96 * float(difference.std()) / math.sqrt(len(difference))
    assert means[0].mean() > 0.1
    assert abs(float(difference.mean())) + half < 0.04, f"{float(difference.mean()):+.4f} +- {half:.4f}"


def test_a_bfloat16_engine_is_measurably_another_policy(warm: Path) -> None:
    policy, task, engine = opened(warm, "vllm(dtype=bfloat16)", 50)
    asked, rollout = sampled(policy, task, engine, 0, 50)
    with torch.no_grad():
        difference = (policy.score(Responses(asked, rollout.responses, rollout.mask)).logp - rollout.logp)[rollout.mask]
    off = float((difference.exp() - 1).abs().mean())
    assert 1e-4 < off < 3e-2


def test_a_worker_killed_with_its_engine_is_resumed_again(warm: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    arguments = ["run", "--model", str(warm), "--task", COUNTDOWN, "--sampler", "vllm", "--methods", "clip"]
    arguments += ["--staleness", "2", "--seeds", "1", "--steps", "30", "--prompts", "4", "--responses", "4"]
    arguments += ["--jobs", "1", "--no-controls", "--out", str(out)]
    environment = command_environment() | {"VCPO_BENCH_CHECKPOINT_SECONDS": "0"}
    process = subprocess.Popen(
        [sys.executable, "-m", "vcpo_bench", *arguments],
        env=environment,
        stderr=subprocess.STDOUT,
        stdout=subprocess.PIPE,
        text=True,
    )
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while not list(out.glob("cells/*.partial/**/state.json")):
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.05)
    workers = [
        int(pid) for pid in children.read_text().split() if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    os.kill(workers[0], signal.SIGKILL)
    said, _ = process.communicate(timeout=within(600))
    assert process.returncode == 0, said
    assert "its worker died" in said
    (facts,) = [json.loads(path.read_text()) for path in out.glob("cells/*/cell.json")]
    assert (facts["status"], facts["steps_done"]) == ("completed", 30)


def test_the_doctors_check_of_an_engine() -> None:
    assert "after a weight update: log-probabilities within" in vllm_in_process("cpu")
