"""A control: the step scales of another method in random order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import torch
from vcpo_bench.methods.core.borrowed_step import BorrowedStep


@dataclass(frozen=True, kw_only=True)
class LrShuffled(BorrowedStep):
    """The step scales of another method in random order: the same sizes at random times."""

    name: ClassVar[str] = "lr-shuffled"
    summary: ClassVar[str] = "control: the step scales of another method's run in random order"
    reference: ClassVar[str] = "control of this project"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "scale = a permutation of the scales of the cell of `to`"

    def arrange(self, values: list[float], rng_seed: int) -> tuple[float, ...]:
        """A permutation drawn with the seed."""
        generator = torch.Generator().manual_seed(rng_seed)
        return tuple(values[place] for place in torch.randperm(len(values), generator=generator).tolist())
