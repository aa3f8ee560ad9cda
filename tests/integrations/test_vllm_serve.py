"""A real `vllm serve` process as the sampler: exact log-probabilities, pauses under way, its death and its return."""

import os
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from patience import within
from vllm_models import TOLERANCE, Watched, command_environment, config, save_model

from vcpo_bench.bench.cells.opening import open_policy, open_task
from vcpo_bench.bench.samplers.catalog import SAMPLERS
from vcpo_bench.bench.samplers.vllm_engine.over_http import VllmOverHttp
from vcpo_bench.bench.samplers.vllm_server import URL_VARIABLE
from vcpo_bench.bench.trajectories import Responses
from vcpo_bench.errors import UsageError

OPTIONS = [
    "--dtype", "float32", "--enforce-eager", "--max-model-len", "256", "--max-num-seqs", "64",
    "--kv-cache-memory-bytes", str(2**26), "--logprobs-mode", "processed_logprobs", "--generation-config", "vllm",
    "--no-enable-prefix-caching", "--no-async-scheduling", "--enable-scale-out",
]  # fmt: skip
STARTUP_SECONDS = 800
ATTEMPTS = 20
"""Tries to change weights under way: on a busy machine responses do not take the time that the ones before took."""


class Served:
    """A server on a port of its own; started again on the same one if asked."""

    def __init__(self, model: Path, log: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url, self._model, self._log = f"http://127.0.0.1:{self.port}", model, log
        self.start()

    def start(self) -> None:
        environment = command_environment() | {"VLLM_SERVER_DEV_MODE": "1", "VLLM_CPU_CI_ENV": "1"}
        command = ["vllm", "serve", str(self._model), "--host", "127.0.0.1", "--port", str(self.port), *OPTIONS]
        with self._log.open("a") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)

    def wait(self) -> None:
        limit = time.monotonic() + within(STARTUP_SECONDS)
        while time.monotonic() < limit and self.process.poll() is None:
            try:
                urllib.request.urlopen(f"{self.url}/health", timeout=5).close()
            except OSError:
                time.sleep(0.5)
            else:
                return
        pytest.fail(self._log.read_text()[-3000:])

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)  # with the engine's process, which would outlive it
        self.process.wait()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("models") / "untied", tied=False)


@pytest.fixture(scope="module")
def server(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    found = Served(model, tmp_path_factory.mktemp("server") / "log")
    found.wait()
    yield found
    found.kill()


@pytest.fixture(autouse=True)
def address(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(URL_VARIABLE, server.url)


@pytest.mark.parametrize(("regime", "staleness"), [("fifo", 0), ("fifo", 4), ("inflight(cache=recompute)", 2)])
def test_log_probabilities_and_lag_are_exact(model: Path, regime: str, staleness: int) -> None:
    cell = Watched(model, regime, staleness, sampler="vllm-server")
    for update in range(6):
        batch = cell.feed()
        versions = batch.version[batch.mask].unique().tolist()
        oldest = max(0, update - staleness)
        assert versions == ([oldest] if regime == "fifo" else list(range(oldest, update + 1)))
        assert all(cell.error(batch, version) < TOLERANCE for version in versions)
    cell.trainer.close()


def long_responses(model: Path, server: Served, expression: str, patience: float = 60.0) -> tuple[Any, Any, Any]:
    """A sampler, its policy, and what draws 8 responses of 150 tokens."""
    cell = config(model, sampler="vllm-server", length=150)
    task = open_task(cell, model)
    policy: Any = open_policy(cell, task, model)
    asked: Any = SAMPLERS.parse(expression)
    sampler = VllmOverHttp(policy, server.url, asked.weights, asked.pause, patience=patience)
    prompts = task.training_prompts(0, 0, 4)
    noise = torch.rand(8, 150, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    return sampler, policy, lambda: (prompts, sampler.generate(prompts, noise, None))


@pytest.mark.parametrize("pause", ["wait", "abort", "keep"])
def test_weights_that_change_under_way(model: Path, server: Served, pause: str) -> None:
    sampler, policy, draw = long_responses(model, server, f"vllm-server(pause={pause})")
    old = {name: tensor.clone() for name, tensor in policy.trained_state().items()}
    sampler.set_weights(policy.named_parameters(), 5)
    draw()  # what is slow the first time only
    began = time.monotonic()
    draw()
    seconds = time.monotonic() - began
    torch.manual_seed(3)
    new = {name: tensor + 0.05 * torch.randn_like(tensor) for name, tensor in old.items()}
    for attempt in range(ATTEMPTS):
        found: list[Any] = []
        thread = threading.Thread(target=lambda found=found: found.append(draw()))
        thread.start()
        time.sleep(seconds * (0.2 + 0.6 * attempt / ATTEMPTS))
        early = thread.is_alive()
        sampler.set_weights(new.items(), 6)
        thread.join()
        prompts, rollout = found[0]
        versions = rollout.version.unique().tolist()
        if versions == ([5] if pause == "wait" else [5, 6]) and early:
            break
        sampler.set_weights(old.items(), 5)
    assert early
    assert versions == ([5] if pause == "wait" else [5, 6])
    assert (rollout.version.diff(dim=1) >= 0).all()
    errors = {}
    for version, weights in ((5, old), (6, new)):
        policy.load_trained(weights)
        with torch.no_grad():
            scores = policy.score(Responses(prompts, rollout.responses, rollout.mask))
        chosen = rollout.mask & (rollout.version == version)
        errors[version] = float((scores.logp - rollout.logp)[chosen].abs().max()) if chosen.any() else 0.0
    assert errors[5] < TOLERANCE
    assert errors[6] > 0.01 if pause == "keep" else errors[6] < TOLERANCE  # a kept cache makes another policy
    sampler.close()


def test_a_tied_model_is_refused(server: Served, tmp_path: Path) -> None:
    tied = save_model(tmp_path / "tied", tied=True)
    with pytest.raises(UsageError, match="tie_word_embeddings=False"):
        long_responses(tied, server, "vllm-server")


def test_a_server_that_dies_is_waited_for_and_gets_its_weights_back(model: Path, server: Served) -> None:
    """Last of this file: it kills the server."""
    sampler, policy, draw = long_responses(model, server, "vllm-server", patience=1.0)
    torch.manual_seed(4)
    moved = {name: tensor + 0.05 * torch.randn_like(tensor) for name, tensor in policy.trained_state().items()}
    sampler.set_weights(moved.items(), 3)
    _, before = draw()
    server.kill()
    with pytest.raises(RuntimeError, match=r"^sampler_died: "):
        draw()
    sampler._patience = within(STARTUP_SECONDS)
    server.start()
    _, after = draw()
    assert torch.equal(after.responses, before.responses)
    assert (after.version == 3).all()
    assert any(event.startswith("sampler_answer_lost") for event in sampler.events)
    sampler.close()
