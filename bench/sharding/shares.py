"""Which trajectories of a batch each process works on, in the same number of passes."""

from __future__ import annotations

import torch
from torch import Tensor

from vcpo_bench.bench.training.micro_batches import Piece, cut, lengths_of
from vcpo_bench.bench.trajectories import Trajectories
from vcpo_bench.errors import UsageError


def own_pieces(batch: Trajectories, number: int, count: int, tokens: int = 0) -> list[Piece]:
    """The pieces of one of `count` processes. All have equally many: a pass is a collective operation of FSDP.

    Trajectories are dealt out by length, longest first, so that all processes have about the same work.

    Args:
        batch: The whole batch.
        number: Number of the process.
        count: Number of processes.
        tokens: Largest number of positions of a piece; 0: no limit.

    Raises:
        UsageError: The trajectories cannot be dealt out evenly.
    """
    order = torch.argsort(lengths_of(batch), descending=True, stable=True)
    if len(order) % count:
        raise UsageError(f"--shards {count}: an update of {len(order)} trajectories cannot be divided by {count}")
    dealt = [order[one::count] for one in range(count)]
    passes = [_passes(batch, rows, tokens) for rows in dealt]
    own = evened(passes[number], max(map(len, passes)))
    return [Piece(batch.single_rows(rows), rows) for rows in own]


def _passes(batch: Trajectories, rows: Tensor, tokens: int) -> list[Tensor]:
    return [rows[piece.rows] for piece in cut(batch.single_rows(rows), tokens=tokens)]


def evened(passes: list[Tensor], count: int) -> list[Tensor]:
    """The passes, those with most rows halved until there are `count`."""
    found = list(passes)
    while len(found) < count:
        largest = max(range(len(found)), key=lambda index: len(found[index]))
        found[largest : largest + 1] = found[largest].tensor_split(2)
    return found
