"""Stage 3: many cells as one stack. First equality, then a thousand runs, then a phase diagram."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from kit import FLOOR, Failed, Result, Setup, cores
from verbs import ended_cells, run_grid

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.stack.stack import Stack
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.trainer import Trainer

TOLERANCE = 1e-3
"""Relative difference of gradient norms, a stack on the device against each cell alone on the CPU, over 4 updates."""
METHODS = ("reinforce", "tis", "clip", "gspo", "vespo", "vcpo(baseline=group)", "sapo", "cispo", "m2po", "kl-cov")
WITH_NORMS = ("vcpo", "vcpo(ess=off)")
SEEDS = 5
RATES = "4e-4,8e-4,1.6e-3"
_UPDATES = 4
_STACK = 64


def equality(setup: Setup) -> Result:
    """Gradient norms of the first updates of a stack on the device and of the same cells alone on the CPU."""
    found: dict[str, float] = {}
    for together in (METHODS, WITH_NORMS):
        configs = [_cell(method, seed) for seed, method in enumerate(together)]
        stacked = _norms([build_trainer(config, device=setup.device) for config in configs], stacked=True)
        alone = _norms([build_trainer(config, device="cpu") for config in configs], stacked=False)
        found |= {method: difference(s, a) for method, s, a in zip(together, stacked, alone, strict=True)}
        setup.keep({"differences": found})
    if wrong := {method: error for method, error in found.items() if not error <= TOLERANCE}:
        raise Failed(f"a stack differs from its cells: {wrong}", {"differences": found})
    return {"largest_difference": max(found.values()), "differences": found}


def difference(stacked: Sequence[float], alone: Sequence[float]) -> float:
    """Largest difference relative to the norm alone plus a floor; infinite where any is not finite."""
    s, a = np.asarray(stacked), np.asarray(alone)
    if not (np.isfinite(s).all() and np.isfinite(a).all()):
        return float("inf")
    return float((np.abs(s - a) / (np.abs(a) + FLOOR)).max())


def thousand(setup: Setup) -> Result:
    """A thousand runs of `chain`, 400 updates each, on the device."""
    cells, jobs, size = setup.pick((1000, cores(), min(_STACK, ceil(1000 / cores()))), (4, 1, 2))
    facts = {"cells": cells, "stack": size, "workers": min(jobs, ceil(cells / size))}
    flags = ("--seeds", cells, "--stack", size, "--device", setup.device)
    return _timed(setup, setup.work / "thousand", jobs, facts, *flags)


def cores_alone(setup: Setup) -> Result:
    """The same cells one by one on all cores of this machine: one per core."""
    cells = setup.pick(cores(), 1)
    facts = {"cells": cells, "workers": cells}
    return _timed(setup, setup.work / "cores", cells, facts, "--seeds", cells, "--stack", "off")


def _timed(setup: Setup, folder: Path, jobs: int, facts: Result, *flags: object) -> Result:
    steps = setup.pick(400, 3)
    grid = ("--task", "chain", "--methods", "tis", "--staleness", 16, "--steps", steps, "--jobs", jobs)
    size = ("--prompts", 16, "--eval-prompts", 256)
    return run_grid(setup, folder, partial(_rate, facts | {"updates": steps}), *grid, *size, *flags)


def _rate(facts: Result, folder: Path) -> Result:
    """Time of training by the cells' own records, to which a stack gives equal shares: no start, no scoreboard."""
    ended = ended_cells(folder)
    seconds = sum(cell["seconds"] for cell in ended) / facts["workers"]
    rate = round(60 * len(ended) / seconds, 2) if ended else 0.0
    return facts | {"ended": len(ended), "training_seconds": round(seconds, 2), "cells_per_minute": rate}


def diagram(setup: Setup) -> Result:
    """A phase diagram by the methods and lags of the preset `phase`, seed after seed, so that a cut one is balanced."""
    full = ("--task", "chain", "--lr", RATES)
    tiny = ("--task", "chain", "--methods", "tis,vcpo", "--staleness", "0,2", "--lr", "4e-4", "--steps", 3)
    jobs = setup.pick(cores(), 1)
    grid = ("--config", "phase", *setup.pick(full, tiny), "--jobs", jobs, "--stack", _STACK, "--device", setup.device)
    found: Result = {}
    for seed in range(setup.pick(SEEDS, 2)):
        found = run_grid(setup, setup.work / "diagram", _outcomes, *grid, "--seeds", f"{seed}-{seed}")
        setup.keep(found)
    return found


def _outcomes(folder: Path) -> Result:
    """One row per task, method, lag and rate."""
    from vcpo_bench.analysis.comparison.scoreboard import scoreboard
    from vcpo_bench.analysis.results import load

    ended = ended_cells(folder)
    if not ended:
        return {"ended": 0}
    columns = ["task", "method", "staleness", "lr", "seeds", "final_reward", "collapsed", "nan", "lag_max"]
    rows: list[dict[str, Any]] = json.loads(scoreboard(load(folder))[columns].to_json(orient="records"))
    seconds = sum(cell["seconds"] for cell in ended)
    return {"ended": len(ended), "seconds_of_cells": round(seconds, 1), "outcomes": rows}


def _cell(method: str, seed: int) -> CellConfig:
    shape = {"prompts": 4, "responses": 4, "steps": _UPDATES, "eval_every": _UPDATES, "task": "chain"}
    return CellConfig(method=method, staleness=2, seed=seed, **shape)


def _norms(trainers: list[Trainer], stacked: bool) -> list[list[float]]:
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
    return [trainer.recorder.tables["steps.parquet"].columns["grad_norm"] for trainer in trainers]
