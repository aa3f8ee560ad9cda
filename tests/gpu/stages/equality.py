"""Stage 1: updates, regimes, sampling and repetition give on the device what they give on the CPU."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from kit import Setup

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.machine.gpu_checks import gpu_checks
from vcpo_bench.bench.regimes import REGIMES
from vcpo_bench.bench.streams import uniforms
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.errors import UsageError
from vcpo_bench.methods import method_names

GRADIENT_TOLERANCE = 1e-3
"""Relative l2 error of a gradient between devices, float32 without TF32."""
LOGP_TOLERANCE = 1e-4
"""Nats between the sampler's and the learner's log-probabilities on one device."""
_SHAPE: dict[str, Any] = {"seed": 0, "prompts": 4, "responses": 4, "steps": 6, "eval_every": 6, "task": "walk-eos"}


def doctor(setup: Setup) -> dict[str, Any]:
    """`vcpo-bench doctor --gpu`, line by line."""
    lines = {line.name: f"{line.status}: {line.text}" for line in gpu_checks()}
    if failed := [name for name, text in lines.items() if text.startswith("failed")]:
        raise RuntimeError(f"{', '.join(failed)}: {[lines[name] for name in failed]}")
    return lines


def updates(setup: Setup) -> dict[str, Any]:
    """Gradient of every method on one stale batch, device against CPU."""
    names = setup.pick(method_names(), ["reinforce", "vcpo", "kl-cov"])
    errors, refused = {}, {}
    for name in names:
        try:
            errors[name] = _gradient_error(name, setup.device)
        except UsageError as problem:
            refused[name] = str(problem)
    worst = max(errors, key=errors.__getitem__)
    if not errors[worst] <= GRADIENT_TOLERANCE:
        raise RuntimeError(f"{worst}: gradient off by {errors[worst]:.1e}; all: {errors}")
    return {"methods": len(errors), "worst": worst, "worst_error": errors[worst], "errors": errors, "refused": refused}


def _gradient_error(method: str, device: str) -> float:
    """Relative error of the gradient of an update whose weights and batch are the same on both devices."""
    regime, lag = ("minibatch", 2) if method == "decoupled" else ("fifo", 2)
    config = CellConfig(method=method, staleness=lag, regime=regime, **_SHAPE)
    here, there = build_trainer(config, device="cpu"), build_trainer(config, device=device)
    for _ in range(3):
        here.advance()
    there.learner.load(here.learner.tensors(), same_method=True)
    batch = here.source.next_batch(3).batch
    gradients = []
    for trainer in (here, there):
        trainer.learner.update(batch, 3)
        found = [p.grad.cpu().double().flatten() for p in trainer.policy.parameters() if p.grad is not None]
        gradients.append(torch.cat(found) if found else torch.zeros(1, dtype=torch.float64))
        trainer.close()
    return float((gradients[1] - gradients[0]).norm() / gradients[0].norm().clamp(min=1e-12))


def regimes(setup: Setup) -> dict[str, Any]:
    """Every regime trains, and its realized lags are those of the CPU."""
    found = {}
    names = [name for name in REGIMES.names() if not name.startswith("async") and name != "template"]
    for name in setup.pick(names, names[:2]):
        config = CellConfig(method="tis", staleness=3, regime=name, **_SHAPE)
        lags = [_realized_lags(config, device) for device in ("cpu", setup.device)]
        if lags[0] != lags[1]:
            raise RuntimeError(f"{name}: realized lags {lags[1]} on {setup.device}, {lags[0]} on the CPU")
        found[name] = lags[1]
    return found


def _realized_lags(config: CellConfig, device: str) -> list[float]:
    trainer = _trained(config, device)
    return [round(float(lag), 6) for lag in trainer.recorder.tables["steps.parquet"].columns["lag_mean"]]


def _trained(config: CellConfig, device: str) -> Trainer:
    trainer = build_trainer(config, device=device)
    while not trainer.status:
        trainer.advance()
    trainer.close()
    return trainer


def sampler(setup: Setup) -> dict[str, Any]:
    """Log-probabilities that the sampler reports against those the learner computes, at lag 0."""
    found = {}
    for task in ("chain", "walk", "walk-eos"):
        trainer = build_trainer(CellConfig(method="tis", staleness=0, **_SHAPE | {"task": task}), device=setup.device)
        prompts = trainer.task.training_prompts(0, 0, 16)
        draws = torch.from_numpy(uniforms(0, "gpu day", 0, 128, trainer.task.max_response))
        rollout = trainer.policy.sample(prompts, draws, trainer.task.eos)
        with torch.no_grad():
            logp = trainer.policy.score(prompts, rollout.responses, rollout.mask).logp.cpu()
        found[task] = float((logp - rollout.logp)[rollout.mask].abs().max())
        trainer.close()
    if max(found.values()) > LOGP_TOLERANCE:
        raise RuntimeError(f"sampler and learner differ by {found} nats")
    return found


def determinism(setup: Setup) -> dict[str, Any]:
    """Whether the same cell gives the same bits twice, and after a resume in the middle."""
    config = CellConfig(method="vcpo", staleness=2, **_SHAPE)
    first, second = (_weights(_trained(config, setup.device)) for _ in range(2))
    third = _weights(_resumed(config, setup.device))
    gaps = {"again": _gap(first, second), "resumed": _gap(first, third)}
    return {"bit_identical": {name: gap == 0.0 for name, gap in gaps.items()}, "largest_difference": gaps}


def _resumed(config: CellConfig, device: str) -> Trainer:
    trainer = build_trainer(config, device=device)
    for _ in range(config.steps // 2):
        trainer.advance()
    with TemporaryDirectory() as folder:
        trainer.save(Path(folder))
        trainer.close()
        again = build_trainer(config, device=device)
        again.load(Path(folder))
    while not again.status:
        again.advance()
    again.close()
    return again


def _weights(trainer: Trainer) -> torch.Tensor:
    return torch.cat([tensor.cpu().flatten() for tensor in trainer.policy.trained_state().values()])


def _gap(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one - other).abs().max())
