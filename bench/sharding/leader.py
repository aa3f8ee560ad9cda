"""Process 0 of a cell: a trainer like any other to whoever runs cells, which has the other processes do the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.shard_rules import check_shards
from vcpo_bench.bench.feeding.sampler_handle import numpy_arrays
from vcpo_bench.bench.sharding.build import build_rank
from vcpo_bench.bench.sharding.other_ranks import OtherRanks, RankSetup
from vcpo_bench.bench.sharding.ranks import Ranks, meeting_place
from vcpo_bench.bench.training.step_observer import StepObserver
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.naming.plugins import plugin_files

LARGE = ("policy/", "optimizer/", "previous_gradient")
"""Tensors of a checkpoint that process 0 hands out in shards."""


class Leader(Trainer):
    """The trainer of process 0; it alone reads and writes files.

    All processes run the same program on the same batches. What they do next is decided here.

    Args:
        own: The trainer of this process, which this one takes over.
        others: The other processes.
    """

    def __init__(self, own: Trainer, others: OtherRanks) -> None:
        super().__init__(own.config, own.task, own.learner, own.source, own.updates, own.recorder, own.observer)
        self.others = others

    def advance(self) -> tuple[float, float]:
        """See `Trainer.advance`."""
        with self.others.doing("advance"):
            return super().advance()

    def save(self, folder: Path) -> None:
        """See `Trainer.save`."""
        with self.others.doing("gather"):
            super().save(folder)

    def _restore(self, folder: Path, scalars: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        small = {name: tensor for name, tensor in tensors.items() if not name.startswith(LARGE)}
        with self.others.doing("restore", folder, scalars, numpy_arrays(small)):
            super()._restore(folder, scalars, tensors)

    def close(self) -> None:
        """End all processes."""
        super().close()
        self.others.close()
        _leave()


def build_leader(config: CellConfig, start: Path | None, device: str, observer: StepObserver | None) -> Trainer:
    """Start the processes of a cell, and return the trainer of this one.

    Args:
        config: The cell, with several shards.
        start: Folder of the language model.
        device: Device of process 0, see `Ranks.join`; empty: the cell's own.
        observer: May end the cell early; None: it trains to its end.

    Raises:
        UsageError: The cell cannot be sharded, or its task, model or devices are not available.
        RankDiedError: A process died.
        RankFailedError: A process raised an error.
    """
    check_shards(config)
    place = device or config.device
    store = meeting_place(config.shards)
    threads, plugins = torch.get_num_threads(), plugin_files(config.plugins)
    setups = [
        RankSetup(config, start, place, number, store.port, threads, plugins) for number in range(1, config.shards)
    ]
    with _ending(OtherRanks(setups)) as others:
        with others.doing("start"):  # who cannot even start is noticed here: `join` would wait for it
            pass
        with others.doing("build"):
            return Leader(build_rank(config, start, Ranks.join(store, 0, config.shards, place), observer), others)


@contextmanager
def _ending(others: OtherRanks) -> Iterator[OtherRanks]:
    """End the processes where they cannot all begin."""
    try:
        yield others
    except BaseException:
        others.close()
        _leave()
        raise


def _leave() -> None:
    """Take the connections down, so that this process may run another cell; they may be broken."""
    if dist.is_initialized():
        with suppress(RuntimeError):
            dist.destroy_process_group()
