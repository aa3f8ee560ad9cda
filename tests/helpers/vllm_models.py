"""Small language models and cells for the tests of real vLLM engines."""

import os
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("vllm", reason="runs in .ci/integrations vllm")

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.model_source import model_identity
from vcpo_bench.bench.policies.hf.create import new_model
from vcpo_bench.bench.tasks.text import text_task
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.trajectories import Trajectories

TOLERANCE = 1e-5
"""Nats by which log-probabilities of engine and learner may differ."""


def save_model(folder: Path, tied: bool) -> Path:
    network, tokenizer = new_model("llama(50k,head=32)")
    if not tied:
        network.config.tie_word_embeddings = False
        network.lm_head.weight = torch.nn.Parameter(network.lm_head.weight.detach().clone())
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def config(folder: Path, regime: str = "fifo", staleness: int = 0, **changes: Any) -> CellConfig:
    settings = {"method": "reinforce", "seed": 0, "lr": 1e-2, "prompts": 4, "responses": 4, "steps": 8}
    settings |= {"task": "arithmetic", "sampler": "vllm", "max_response": changes.pop("length", 12)} | changes
    settings["task"] = text_task(settings["task"]).canonical
    model = model_identity(str(folder))
    return CellConfig(model=model, regime=regime, staleness=staleness, eval_every=100, **settings)


class Watched:
    """A cell whose policy moves by noise instead of learning, so that any stale weight shows, and what it was like."""

    def __init__(self, folder: Path, regime: str, staleness: int, **changes: Any) -> None:
        self.trainer = build_trainer(config(folder, regime, staleness, **changes), start=folder)
        self.past: list[dict[str, torch.Tensor]] = []

    def feed(self) -> Trajectories:
        """The next batch; then the policy moves."""
        trainer = self.trainer
        self.past.append({name: tensor.clone() for name, tensor in trainer.policy.trained_state().items()})
        batch = trainer.source.next_batch(trainer.step).batch
        torch.manual_seed(trainer.step)
        with torch.no_grad():
            for parameter in trainer.policy.trainable():
                parameter.add_(0.05 * torch.randn_like(parameter))
        trainer.step += 1
        return batch

    def error(self, batch: Trajectories, version: int) -> float:
        """Largest difference between behavior and recomputed log-probability of the tokens of a version."""
        policy = self.trainer.policy
        now = {name: tensor.clone() for name, tensor in policy.trained_state().items()}
        policy.load_trained(self.past[version])
        with torch.no_grad():
            scores = policy.score(batch.flat())
        policy.load_trained(now)
        chosen = (batch.mask & (batch.version == version)).flatten(0, 1)
        return float((scores.logp - batch.behavior_logp.flatten(0, 1))[chosen].abs().max())


def command_environment() -> dict[str, str]:
    """For processes that a test starts."""
    return {**os.environ, "VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}
