"""Estimate of how long a grid will take, from a few updates timed on this machine."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.devices import keep_freed_memory
from vcpo_bench.bench.samplers.policy_sampler import PolicySampler
from vcpo_bench.bench.training.build import build_trainer

TIMED_UPDATES = 5
TIMED_OF_MODELS = 2
"""Updates of a language model that are timed where an engine draws its responses; each takes seconds."""
TIMED_RATE, TIMED_RATE_OF_MODELS = 3e-4, 1e-6
"""Learning rates of timed cells; a released model must not break, which would change the length of its responses."""
TIMED_PROMPTS, TIMED_RESPONSES = 64, 64
"""Largest sizes that are timed; the time of a larger cell is that of such a cell times the ratio of the sizes."""
WORKER_START_SECONDS = 5.0


class Estimate(NamedTuple):
    """How long a grid takes.

    Attributes:
        seconds: Until all cells have run.
        parts: One line per task and kind of method of a language model: what was measured.
    """

    seconds: float
    parts: list[str]


def estimate(cells: Sequence[PlannedCell], workers: int) -> Estimate:
    """Estimate how long a grid takes.

    One synchronous cell of each (task, method, size) is trained for a few updates on one thread; parts of those of a
    language model are timed (`model_time`).

    Args:
        cells: Cells to run, the longest first.
        workers: Number of worker processes.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        timed: dict[CellConfig, _Timed] = {}
        durations = [_duration(cell, timed) for cell in cells]
    finally:
        torch.set_num_threads(threads)
    loads = [0.0] * workers
    for seconds in sorted(durations, reverse=True):
        heapq.heapreplace(loads, loads[0] + seconds)
    return Estimate(max(loads) + WORKER_START_SECONDS, [one.words for one in timed.values() if one.words])


class _Timed(NamedTuple):
    """Seconds of sampling, of the rest of an update, of an evaluation, and once per cell; words for the user."""

    sampling: float
    updating: float
    evaluating: float
    once: float = 0.0
    words: str = ""


def _duration(cell: PlannedCell, timed: dict[CellConfig, _Timed]) -> float:
    config = cell.config
    stand_in = "reinforce" if config.series else config.method  # the step scales it uses do not exist yet
    shared: dict[str, Any] = {"method": stand_in, "seed": 0, "steps": TIMED_UPDATES + 1, "series": ""}
    shared["lr"] = TIMED_RATE_OF_MODELS if config.model else TIMED_RATE
    whole = isinstance(config.parts.sampler, PolicySampler) and bool(config.model)
    needs = config.parts.method.needs
    if whole or config.series or "proximal_logp" not in needs:  # a proximal policy exists only at a lag
        shared |= {"staleness": 0, "regime": config.parts.regime.at(0).text()}
    prompts, responses = min(config.prompts, TIMED_PROMPTS), min(config.responses, TIMED_RESPONSES)
    if whole:
        shared["method"] = "vcpo" if "score_norm_sq" in needs else "reinforce"
    else:
        shared |= {"prompts": prompts, "responses": responses}
    kind = replace(config, **shared)
    if kind not in timed:
        timed[kind] = (_parts if whole else _time)(kind, cell.start, cell.device)
    larger = 1.0 if whole else (config.prompts / prompts) * (config.responses / responses)
    sampling, updating, evaluating, once, _ = timed[kind]
    evaluations = cell.updates // config.eval_every + 1
    drawn = (cell.updates + config.staleness) * sampling
    return once + larger * (drawn + cell.updates * updating) + evaluations * evaluating


def _parts(config: CellConfig, start: Path | None, device: str) -> _Timed:
    """Of a language model that draws its responses itself."""
    from vcpo_bench.bench.running.pool.model_time import time_model

    keep_freed_memory()  # as in a worker
    found = time_model(config, start, device)
    words = f"{config.task}, methods like {config.method}: {found.words()}"
    return _Timed(found.sampling, found.updating, found.evaluating, found.loading + found.first, words)


def _time(config: CellConfig, start: Path | None, device: str) -> _Timed:
    """The fastest of a few updates."""
    with closing(build_trainer(config, start=start, device=device)) as trainer:
        for _ in range(TIMED_OF_MODELS if config.model else TIMED_UPDATES):
            trainer.advance()
        steps, evals = trainer.recorder.timings()
    return _Timed(steps[0], steps[1], evals)
