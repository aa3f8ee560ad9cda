"""own: the training loop of this project."""

from __future__ import annotations

from dataclasses import dataclass

from vcpo_bench.bench.trainers.catalog import CellTrainer


@dataclass(frozen=True, kw_only=True)
class Own(CellTrainer):
    """Trains a cell in the worker that has it (`bench.training`)."""

    name = "own"
    summary = "the loop of this project: every method, task and regime, one process per cell"
