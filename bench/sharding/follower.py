"""A process of a sharded cell other than process 0: it does what it is told, and ends with process 0.

`OtherRanks` starts it as `python -m`, with the descriptor of a pipe. The answer to an order is an empty text, or the
error it raised.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from multiprocessing.connection import Connection
from typing import Any

import torch

from vcpo_bench.bench.sharding.build import build_rank
from vcpo_bench.bench.sharding.other_ranks import RankSetup
from vcpo_bench.bench.sharding.ranks import Ranks, meeting_place
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.naming.plugins import load_plugin

POLL_SECONDS = 1.0


class FollowerRank:
    """Trains as process 0 does.

    Args:
        setup: The cell, and the place of this process in it.
    """

    def __init__(self, setup: RankSetup) -> None:
        torch.set_num_threads(setup.threads)
        for plugin in setup.plugins:
            load_plugin(plugin)
        self._setup = setup
        self._trainer: Trainer | None = None

    def do(self, verb: str, *arguments: Any) -> None:
        """Carry out one order: `start` (nothing more to do), `build`, `advance`, `gather` or `restore`."""
        if verb == "start":
            return
        if verb == "build":
            setup = self._setup
            store = meeting_place(setup.config.shards, setup.port)
            ranks = Ranks.join(store, setup.number, setup.config.shards, setup.device)
            self._trainer = build_rank(setup.config, setup.start, ranks)
            return
        assert self._trainer is not None
        if verb == "advance":
            self._trainer.advance()
        elif verb == "gather":
            self._trainer.learner.tensors()
        else:
            folder, scalars, arrays = arguments
            tensors = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
            self._trainer._restore(folder, scalars, tensors)


def follow(pipe: Connection) -> None:
    """Take orders until the pipe closes or one fails.

    Args:
        pipe: Connection to process 0.
    """
    follower = FollowerRank(pipe.recv())
    while True:
        try:
            order = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            follower.do(*order)
        except Exception:  # process 0 records it, and ends all processes
            pipe.send(traceback.format_exc())
            return
        pipe.send("")


def _follow_parent(parent: int) -> None:
    """End with process 0, also in the middle of an exchange with it."""
    while os.getppid() == parent:
        time.sleep(POLL_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_follow_parent, args=(os.getppid(),), daemon=True).start()
    try:
        follow(Connection(int(sys.argv[1])))
    except (BrokenPipeError, EOFError):
        sys.exit(1)
    os._exit(0)  # connections to other processes may be broken; taking them down would wait for them
