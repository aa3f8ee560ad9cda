"""From a cell to the trainer of one of its processes."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.opening import open_policy, open_task
from vcpo_bench.bench.sharding.learner import ShardedLearner
from vcpo_bench.bench.sharding.ranks import Ranks
from vcpo_bench.bench.training.build import build_learner, trainer_of
from vcpo_bench.bench.training.step_observer import StepObserver
from vcpo_bench.bench.training.trainer import Trainer


def build_rank(config: CellConfig, start: Path | None, ranks: Ranks, observer: StepObserver | None = None) -> Trainer:
    """What trains a cell in one of its processes; the same in all of them, but for the observer.

    Args:
        config: The cell.
        start: Folder of the language model.
        ranks: The processes.
        observer: See `build_trainer`.

    Raises:
        UsageError: The task, model or device is not available, or the model cannot be sharded.
    """
    task = open_task(config, start)
    policy = open_policy(config, task, start)  # in main memory: a GPU receives its shards only
    learner = build_learner(config, policy, kind=partial(ShardedLearner, ranks=ranks))
    return trainer_of(config, task, learner, start, observer)
