"""Starts the processes that train a cell together; the other processes run this file as well.

No command uses ranks: they are the data-parallel baseline that `docs/benchmarks/async.md` measures asynchrony against.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import torch

from ranks.learner import ParallelLearner
from ranks.ranks import Ranks
from ranks.source import ParallelSource, check_shares
from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.opening import open_policy, open_task
from vcpo_bench.bench.children import shielded
from vcpo_bench.bench.devices import keep_freed_memory
from vcpo_bench.bench.training.build import build_learner, build_recorder
from vcpo_bench.bench.training.trainer import Trainer

_HELPERS = Path(__file__).resolve().parents[1]


@contextmanager
def parallel_trainer(config: CellConfig, count: int) -> Iterator[Trainer]:
    """A trainer of this process, rank 0, whose `advance` the other ranks follow step by step; only it evaluates.

    Args:
        config: A synchronous cell.
        count: Number of ranks; each is a process with one thread.

    Raises:
        UsageError: Ranks cannot train this cell.
    """
    check_shares(config, count)
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        command = [sys.executable, "-m", "ranks.launch", str(store), str(count)]
        paths = os.pathsep.join([str(_HELPERS), *filter(None, [os.environ.get("PYTHONPATH")])])
        with shielded():
            others = [
                subprocess.Popen(
                    [*command, str(rank), json.dumps(config.values())],
                    stdin=subprocess.DEVNULL,
                    env=os.environ | {"PYTHONPATH": paths},
                )
                for rank in range(1, count)
            ]
        try:
            with Ranks.opened(store, 0, count) as ranks:
                yield _trainer(Trainer, config, ranks)
        finally:
            for other in others:
                other.kill()
                other.wait()


class Follower(Trainer):
    """The trainer of another rank: rank 0 evaluates for all, which this one waits for in its next update."""

    def _evaluate(self) -> None:
        pass


def _trainer(kind: type[Trainer], config: CellConfig, ranks: Ranks) -> Trainer:
    task = open_task(config, None)
    policy = open_policy(config, task, None, config.device)
    learner = build_learner(config, policy, kind=partial(ParallelLearner, ranks))
    source = ParallelSource(config, task, policy, ranks)
    return kind(config, task, learner, source, config.steps, build_recorder(config))


def main() -> None:
    """Another rank: trains the same cell; ends when that is done or when the others are gone."""
    store, count, rank, config = sys.argv[1:]
    torch.set_num_threads(1)
    keep_freed_memory()
    with Ranks.opened(Path(store), int(rank), int(count)) as ranks:
        trainer = _trainer(Follower, CellConfig(**json.loads(config)), ranks)
        try:
            while not trainer.status:
                trainer.advance()
        except RuntimeError:  # the connection is closed: the other ranks are gone, and nobody waits for this one
            os._exit(1)
    os._exit(0)  # threads of the connection are still running and would abort an ordinary exit


if __name__ == "__main__":
    main()
