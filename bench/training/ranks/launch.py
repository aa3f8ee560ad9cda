"""Starting the processes that train a cell together; this file is also what the other ones run."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.devices import keep_freed_memory
from vcpo_bench.bench.training.ranks.ranks import Ranks
from vcpo_bench.bench.training.ranks.source import check_shared_out
from vcpo_bench.bench.training.trainer import Trainer


@contextmanager
def parallel_trainer(config: CellConfig, count: int) -> Iterator[Trainer]:
    """A trainer of this process, rank 0, whose `advance` the other ranks follow step by step; only it records.

    Args:
        config: A synchronous cell.
        count: Ranks; each is a process with one thread.

    Raises:
        UsageError: Ranks cannot train this cell.
    """
    check_shared_out(config, count)
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        command = [sys.executable, "-m", "vcpo_bench.bench.training.ranks.launch", str(store), str(count)]
        others = [
            subprocess.Popen([*command, str(rank), config.model_dump_json()], stdin=subprocess.DEVNULL)
            for rank in range(1, count)
        ]
        try:
            with Ranks.opened(store, 0, count) as ranks:
                yield Trainer(config, ranks=ranks)
        finally:
            for other in others:
                other.kill()
                other.wait()


def main() -> None:
    """Another rank: trains the same cell; ends when it is done or when the others are gone."""
    store, count, rank, config = sys.argv[1:]
    torch.set_num_threads(1)
    keep_freed_memory()
    with Ranks.opened(Path(store), int(rank), int(count)) as ranks:
        trainer = Trainer(CellConfig.model_validate_json(config), ranks=ranks)
        try:
            while not trainer.status:
                trainer.advance()
        except RuntimeError:  # of the connection: the others are gone, and nobody waits for this one
            os._exit(1)
    os._exit(0)  # threads of the connection are still there and would abort an ordinary end


if __name__ == "__main__":
    main()
