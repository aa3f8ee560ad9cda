"""Stage 4: updates, regimes, sampling and repetition give on the device what they give on the CPU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from kit import Failed, Setup, Skipped, broken, relative, said

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.machine.gpu_checks import gpu_checks
from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.regimes import REGIMES
from vcpo_bench.bench.streams import uniforms
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.bench.trajectories import Responses, Trajectories
from vcpo_bench.errors import UsageError
from vcpo_bench.methods import method_names, parse_method

GRADIENT_TOLERANCE = 1e-3
"""Relative l2 error of a gradient between devices, float32 without TF32."""
LOGP_TOLERANCE = 1e-4
"""Nats between the sampler's and the learner's log-probabilities on one device."""
NOISE = 0.4
"""Standard deviation, in nats, of what is added to the behavior policy's log-probabilities."""
_SHAPE: dict[str, Any] = {"seed": 0, "prompts": 4, "responses": 4, "steps": 6, "eval_every": 6, "task": "walk-eos"}


def doctor(setup: Setup) -> dict[str, Any]:
    """`vcpo-bench doctor --gpu`, line by line."""
    lines: dict[str, Any] = {}
    for line in gpu_checks():
        lines[line.name] = f"{line.status}: {line.text}"
        setup.keep(lines)
    if failed := [f"{name}: {text}" for name, text in lines.items() if text.startswith("failed")]:
        raise Failed("; ".join(failed), lines)
    return lines


def updates(setup: Setup) -> dict[str, Any]:
    """Gradient of every method on one stale batch, device against CPU; a method that fails leaves the others'."""
    found: dict[str, Any] = {"errors": {}, "refused": {}, "failed": {}}
    for name in method_names():
        try:
            found["errors"][name] = _gradient_error(name, setup.device)
        except UsageError as problem:
            found["refused"][name] = str(problem)
        except Exception as problem:  # whatever a driver raises is a result
            found["failed"][name] = said(problem)
            if broken(setup.device):
                break
        setup.keep(found)
    return _judged(found, GRADIENT_TOLERANCE, "gradient off")


def _judged(found: dict[str, Any], tolerance: float, what: str) -> dict[str, Any]:
    """The findings where all is well.

    Raises:
        Failed: Something raised, or an error is above the tolerance or not a number; the findings come with it.
    """
    wrong = [f"{name}: {text}" for name, text in found["failed"].items()]
    wrong += [f"{name}: {what} by {error:.1e}" for name, error in found["errors"].items() if not error <= tolerance]
    if wrong:
        raise Failed("; ".join(wrong), found)
    return {"checked": len(found["errors"]), "largest_error": max(found["errors"].values())} | found


def _gradient_error(method: str, device: str) -> float:
    """Relative error of the gradient of an update whose weights and batch are the same on both devices."""
    config = CellConfig(method=method, staleness=2, **_SHAPE | _where(method))
    here, there = build_trainer(config, device="cpu"), build_trainer(config, device=device)
    for _ in range(3):
        here.advance()
    there.learner.load(here.learner.tensors(), same_method=True)
    batch = _disturbed(here.source.next_batch(3).batch)
    gradients = []
    for trainer in (here, there):
        trainer.learner.update(batch, 3)
        found = [p.grad.cpu().double().flatten() for p in trainer.policy.parameters() if p.grad is not None]
        gradients.append(torch.cat(found) if found else torch.zeros(1, dtype=torch.float64))
        trainer.close()
    return relative(float((gradients[1] - gradients[0]).norm()), float(gradients[0].norm()))


def _disturbed(batch: Trajectories) -> Trajectories:
    """The batch as of an engine that disagrees with the learner, so that bounds clip and masks drop."""
    noise = torch.randn(batch.behavior_logp.shape, generator=torch.Generator().manual_seed(0))
    return replace(batch, behavior_logp=(batch.behavior_logp + NOISE * noise).clamp(max=-1e-3))


def _where(method: str) -> dict[str, str]:
    """The regime that has what a method asks for."""
    return {"regime": "minibatch" if "proximal_logp" in parse_method(method).needs else "fifo"}


def regimes(setup: Setup) -> dict[str, Any]:
    """Every regime trains, and its realized lags are those of the CPU."""
    lags, wrong = {}, {}
    for name in REGIMES.names():
        name = f"{name}(clock=virtual)" if REGIMES.parse(name).asynchronous else name  # a real clock's lags vary
        config = CellConfig(method="tis", staleness=3, regime=name, **_SHAPE)
        try:
            here, there = (_realized_lags(config, device) for device in ("cpu", setup.device))
            lags[name] = there
            if here != there:
                wrong[name] = f"realized lags {there} on {setup.device}, {here} on the CPU"
        except Exception as problem:
            wrong[name] = said(problem)
            if broken(setup.device):
                break
        setup.keep({"lags": lags, "failed": wrong})
    if wrong:
        raise Failed("; ".join(f"{name}: {text}" for name, text in wrong.items()), {"lags": lags, "failed": wrong})
    return lags


def _realized_lags(config: CellConfig, device: str) -> list[float]:
    trainer = _trained(config, device)
    return [round(float(lag), 6) for lag in trainer.recorder.tables["steps.parquet"].columns["lag_mean"]]


def _trained(config: CellConfig, device: str) -> Trainer:
    trainer = build_trainer(config, device=device)
    while not trainer.status:
        trainer.advance()
    trainer.close()
    return trainer


def clock(setup: Setup) -> dict[str, Any]:
    """`async` by the clock on the wall: a sampler process and the learner share the device; lags stay within k."""
    if setup.device.startswith("mock"):
        raise Skipped("the mock device exists in one process only, and the sampler is another one")
    config = CellConfig(method="vcpo", staleness=3, regime="async", **_SHAPE | {"steps": setup.pick(50, 6)})
    trainer = _trained(config, setup.device)
    columns = trainer.recorder.tables["steps.parquet"].columns
    found = {"updates": len(columns["lag_max"]), "lag_max": max(columns["lag_max"]), "lag_mean": columns["lag_mean"]}
    if found["lag_max"] > config.staleness or trainer.status != "completed":
        raise Failed(f"{trainer.status}, lag up to {found['lag_max']}", found)
    return found


def sampler(setup: Setup) -> dict[str, Any]:
    """Log-probabilities that the sampler reports against those the learner computes, at lag 0."""
    found = {}
    for task in ("chain", "walk", "walk-eos"):
        trainer = build_trainer(CellConfig(method="tis", staleness=0, **_SHAPE | {"task": task}), device=setup.device)
        prompts = trainer.task.training_prompts(0, 0, 16)
        draws = torch.from_numpy(uniforms(0, "gpu day", 0, 128, trainer.task.max_response))
        rollout = trainer.policy.sample(Draw(prompts, draws, trainer.task.eos))
        with torch.no_grad():
            logp = trainer.policy.score(Responses(prompts, rollout.responses, rollout.mask)).logp.cpu()
        found[task] = float((logp - rollout.logp)[rollout.mask].abs().max())
        trainer.close()
    return _judged({"errors": found, "failed": {}}, LOGP_TOLERANCE, "sampler and learner differ")


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
