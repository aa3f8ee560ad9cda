"""Estimate of how long a grid will take, from a few updates timed on this machine."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.training.build import build_trainer

TIMED_UPDATES = 5
TIMED_OF_MODELS = 2
"""Updates of a language model that are timed; each takes seconds."""
TIMED_RATE, TIMED_RATE_OF_MODELS = 3e-4, 1e-6
"""Learning rates of timed cells; a released model must not break, which would change the length of its responses."""
TIMED_PROMPTS, TIMED_RESPONSES = 64, 64
"""Largest sizes that are timed; the time of a larger cell is that of such a cell times the ratio of the sizes."""
WORKER_START_SECONDS = 5.0


def estimate(cells: Sequence[PlannedCell], workers: int) -> float:
    """Estimate how long a grid takes.

    One synchronous cell of each (task, method, size) is trained for a few updates on one thread.

    Args:
        cells: Cells to run, the longest first.
        workers: Number of worker processes.

    Returns:
        Seconds until all cells have run.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        timed: dict[CellConfig, tuple[float, float, float]] = {}
        durations = [_duration(cell, timed) for cell in cells]
    finally:
        torch.set_num_threads(threads)
    loads = [0.0] * workers
    for seconds in sorted(durations, reverse=True):
        heapq.heapreplace(loads, loads[0] + seconds)
    return max(loads) + WORKER_START_SECONDS


def _duration(cell: PlannedCell, timed: dict[CellConfig, tuple[float, float, float]]) -> float:
    config = cell.config
    stand_in = "reinforce" if config.series else config.method  # the step scales it uses do not exist yet
    shared: dict[str, Any] = {"method": stand_in, "seed": 0, "steps": TIMED_UPDATES + 1, "series": ""}
    shared["lr"] = TIMED_RATE_OF_MODELS if config.model else TIMED_RATE
    if config.series or "proximal_logp" not in config.parts.method.needs:  # a proximal policy exists only at a lag
        shared |= {"staleness": 0, "regime": config.parts.regime.at(0).text()}
    prompts, responses = min(config.prompts, TIMED_PROMPTS), min(config.responses, TIMED_RESPONSES)
    kind = replace(config, **shared, prompts=prompts, responses=responses)
    if kind not in timed:
        timed[kind] = _time(kind, cell.start, cell.device)
    larger = (config.prompts / prompts) * (config.responses / responses)
    sampling, updating, evaluating = timed[kind][0] * larger, timed[kind][1] * larger, timed[kind][2]
    evaluations = cell.updates // config.eval_every + 1
    return cell.updates * (sampling + updating) + config.staleness * sampling + evaluations * evaluating


def _time(config: CellConfig, start: Path | None, device: str) -> tuple[float, float, float]:
    """Fastest seconds of sampling, of the rest of an update, and of an evaluation."""
    with closing(build_trainer(config, start=start, device=device)) as trainer:
        for _ in range(TIMED_OF_MODELS if config.model else TIMED_UPDATES):
            trainer.advance()
        steps, evals = trainer.recorder.timings()
    return steps[0], steps[1], evals
