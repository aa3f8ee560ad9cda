"""Stage 2: many cells as one stack. First equality, then a thousand runs, then a phase diagram."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from kit import Setup
from verbs import run_grid

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.stack.stack import Stack
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.trainer import Trainer

TOLERANCE = 1e-3
"""Relative difference of gradient norms, a stack on the device against each cell alone on the CPU, over 4 updates."""
METHODS = ("reinforce", "tis", "clip", "gspo", "vespo", "vcpo(baseline=group)")
_UPDATES = 4


def equality(setup: Setup) -> dict[str, Any]:
    """Gradient norms of the first updates of a stack on the device and of the same cells alone on the CPU."""
    methods = setup.pick((*METHODS, "sapo", "cispo", "m2po", "kl-cov"), METHODS[:2])
    found = {}
    for together in (methods, ("vcpo", "vcpo(ess=off)")):
        configs = [_cell(method, seed) for seed, method in enumerate(together)]
        stacked = _norms([build_trainer(config, device=setup.device) for config in configs], stacked=True)
        alone = _norms([build_trainer(config, device="cpu") for config in configs], stacked=False)
        found |= {
            method: float(np.max(np.abs(s / a - 1))) for method, s, a in zip(together, stacked, alone, strict=True)
        }
    if not max(found.values()) <= TOLERANCE:
        raise RuntimeError(f"a stack differs from its cells: {found}")
    return found


def thousand(setup: Setup) -> dict[str, Any]:
    """A thousand runs of `chain`, 400 updates each, and as many as fit the time on all cores of this machine."""
    cells, steps, jobs, size, few = setup.pick((1000, 400, 16, 64, 32), (4, 3, 1, 2, 1))
    grid = ("--task", "chain", "--methods", "tis", "--staleness", "16", "--steps", steps, "--jobs", jobs)
    stacked = (*grid, "--seeds", cells, "--stack", size, "--device", setup.device)
    gpu = run_grid(setup, setup.work / "thousand", *stacked)
    cpu = run_grid(setup, setup.work / "cores", *grid, "--seeds", few, "--stack", "off")
    rate = {"device": 60 * cells / gpu["seconds"], "all cores": 60 * few / cpu["seconds"]}
    ratio = rate["device"] / rate["all cores"]
    return {"cells": cells, "updates": steps, **gpu, "cells per minute": rate, "ratio to all cores": ratio}


def diagram(setup: Setup) -> dict[str, Any]:
    """Share of failed runs by method, lag and learning rate: the preset `phase`."""
    few = ("--task", "chain", "--methods", "reinforce,vcpo", "--staleness", "0,2", "--lr", "4e-4", "--seeds", 1)
    grid = ("--config", "phase", *setup.pick((), (*few, "--steps", 3)), "--jobs", setup.pick(16, 1))
    folder = setup.work / "diagram"
    spent = run_grid(setup, folder, *grid, "--stack", 64, "--device", setup.device)
    return spent | {"outcomes": _outcomes(folder)}


def _outcomes(folder: Path) -> list[dict[str, Any]]:
    """One row per task, method, lag and rate."""
    from vcpo_bench.analysis.comparison.scoreboard import scoreboard
    from vcpo_bench.analysis.results import load

    columns = ["task", "method", "staleness", "lr", "seeds", "final_reward", "collapsed", "nan", "lag_max"]
    rows: list[dict[str, Any]] = json.loads(scoreboard(load(folder))[columns].to_json(orient="records"))
    return rows


def _cell(method: str, seed: int) -> CellConfig:
    shape = {"prompts": 4, "responses": 4, "steps": _UPDATES, "eval_every": _UPDATES, "task": "chain"}
    return CellConfig(method=method, staleness=2, seed=seed, **shape)


def _norms(trainers: list[Trainer], stacked: bool) -> list[np.ndarray]:
    """Gradient norm of every update, by cell."""
    if stacked:
        stack = Stack(trainers)
        for _ in range(_UPDATES):
            if problems := [each.problem for each in stack.advance() if each.problem]:
                raise problems[0]
    for trainer in trainers:
        while not stacked and not trainer.status:
            trainer.advance()
        trainer.close()
    return [np.array(trainer.recorder.tables["steps.parquet"].columns["grad_norm"]) for trainer in trainers]
