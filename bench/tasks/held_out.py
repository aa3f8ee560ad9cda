"""Which prompts of a task in tokens are held out, and draws that never return one of them."""

from __future__ import annotations

from collections.abc import Callable

from vcpo_bench.lazy_torch import Tensor, torch

CANDIDATES = 4096
"""Prompts among which the held-out ones are chosen."""

_SHARE = 4  # at most one in four distinct prompts is held out, so that enough are left to train on


def choose(candidates: Tensor, hard: Tensor | None, count: int) -> Tensor:
    """The first distinct candidates, easy and hard ones in turn where the task tells them apart.

    Args:
        candidates: Prompts int64 [N, Lp].
        hard: bool [N], or None: the task makes no difference.
        count: Number of prompts asked for.

    Returns:
        int64 [M, Lp], M at most `count` and at most a quarter of the distinct candidates; even rows are easy and odd
        rows hard where there are both.
    """
    first = _first_of_each(candidates)
    size = min(count, len(first) // _SHARE)
    if hard is None:
        return candidates[first[:size]]
    easy, difficult = first[~hard[first]], first[hard[first]]
    pairs = min(size // 2, len(easy), len(difficult))
    if not pairs:
        return candidates[first[:size]]
    return candidates[torch.stack([easy[:pairs], difficult[:pairs]], dim=1).flatten()]


def draw_apart(held_out: Tensor, draw: Callable[[int], Tensor]) -> Tensor:
    """Prompts of which none is held out: a row that is takes the same row of the next attempt.

    Args:
        held_out: int64 [M, Lp].
        draw: Gives the prompts int64 [count, Lp] of attempt 0, 1, 2, ...
    """
    rows = draw(0)
    attempt = 0
    while bool((taken := _among(rows, held_out)).any()):
        attempt += 1
        rows = torch.where(taken[:, None], draw(attempt), rows)
    return rows


def _among(rows: Tensor, held_out: Tensor) -> Tensor:
    """Bool [B]: the row [B, Lp] is one of those held out [M, Lp]."""
    return (rows[:, None] == held_out[None]).all(2).any(1)


def _first_of_each(rows: Tensor) -> Tensor:
    """Index of the first occurrence of every distinct row, in order."""
    seen: dict[tuple[int, ...], int] = {}
    for place, row in enumerate(rows.tolist()):
        seen.setdefault(tuple(row), place)
    return torch.tensor(list(seen.values()))
