"""Cut a batch into pieces that fit in memory, and put what was computed on them back together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from vcpo_bench.bench.trajectories import Trajectories


class Piece(NamedTuple):
    """Some trajectories of a batch.

    Attributes:
        part: The trajectories.
        rows: Their indices among the batch's `P * G` rows, in the order of `part`.
    """

    part: Trajectories
    rows: slice | Tensor


def cut(batch: Trajectories, tokens: int) -> list[Piece]:
    """Cut a batch by length into pieces of at most `tokens` positions.

    A piece holds rows of similar length; a trajectory longer than `tokens` is a piece of its own.

    Args:
        batch: P prompts with G responses each.
        tokens: Largest number of positions of a piece, prompt, response and padding; 0: no limit.
    """
    length = lengths_of(batch)
    if not tokens or len(length) * int(length.max()) <= tokens:
        return [Piece(batch, slice(0, len(length)))]
    order = torch.argsort(length, descending=True, stable=True)
    return [Piece(batch.single_rows(rows), rows) for rows in _packed(order, length.tolist(), tokens)]


def lengths_of(batch: Trajectories) -> Tensor:
    """`[P * G]` positions of each trajectory: the padded prompt, and the response up to its last counted token."""
    positions = torch.arange(1, batch.mask.shape[2] + 1)
    return batch.prompts.shape[1] + (batch.mask.flatten(0, 1) * positions).amax(1)


def _packed(order: Tensor, length: Sequence[int], tokens: int) -> list[Tensor]:
    """Split rows, longest first, so that the number of rows times the longest of each part is at most `tokens`."""
    found, rows = [], order.tolist()
    while rows:
        count = max(1, tokens // length[rows[0]])
        found.append(torch.tensor(rows[:count]))
        rows = rows[count:]
    return found


def gather(pieces: Sequence[Piece], values: Sequence[Tensor]) -> Tensor:
    """Concatenate values of each piece, `[rows, ...]`, in the batch's order, in main memory."""
    together = torch.cat([value.detach() for value in values]).cpu()
    if all(isinstance(piece.rows, slice) for piece in pieces):
        return together
    ordered = torch.empty_like(together)
    ordered[torch.cat([piece.rows for piece in pieces if isinstance(piece.rows, Tensor)])] = together
    return ordered
