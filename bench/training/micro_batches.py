"""Cutting a batch into pieces that fit in memory, and putting what was computed of them together again."""

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
        rows: Which of the batch's `P * G` rows they are, in their order here.
    """

    part: Trajectories
    rows: slice | Tensor


def cut(batch: Trajectories, pieces: int = 1, tokens: int = 0) -> list[Piece]:
    """Cut a batch along prompts into at most `pieces`, or by length into pieces of at most `tokens` positions.

    By length, rows go together that need about the same number of positions; a single trajectory longer than
    `tokens` is a piece of its own.

    Args:
        batch: `[P, G, T]`.
        pieces: Number of pieces of whole groups, where `tokens` is 0.
        tokens: Prompt and response positions of a piece, padding included; 0: no limit.
    """
    if not tokens:
        found, begin = [], 0
        for part in batch.split(pieces):
            rows = part.mask.shape[0] * part.mask.shape[1]
            found.append(Piece(part, slice(begin, begin + rows)))
            begin += rows
        return found
    places = torch.arange(1, batch.mask.shape[2] + 1)
    length = batch.prompts.shape[1] + (batch.mask.flatten(0, 1) * places).amax(1)
    if len(length) * int(length.max()) <= tokens:
        return [Piece(batch, slice(0, len(length)))]
    order = torch.argsort(length, descending=True, stable=True)
    return [Piece(batch.single_rows(rows), rows) for rows in _packed(order, length.tolist(), tokens)]


def _packed(order: Tensor, length: Sequence[int], tokens: int) -> list[Tensor]:
    """Consecutive stretches of rows, longest first, whose count times the longest stays within `tokens`."""
    found, rows = [], order.tolist()
    while rows:
        count = max(1, tokens // length[rows[0]])
        found.append(torch.tensor(rows[:count]))
        rows = rows[count:]
    return found


def gather(pieces: Sequence[Piece], values: Sequence[Tensor]) -> Tensor:
    """What was computed of each piece, `[rows, ...]`, as one tensor in the batch's order, in main memory."""
    together = torch.cat([value.detach() for value in values]).cpu()
    if all(isinstance(piece.rows, slice) for piece in pieces):
        return together
    ordered = torch.empty_like(together)
    ordered[torch.cat([piece.rows for piece in pieces if isinstance(piece.rows, Tensor)])] = together
    return ordered
