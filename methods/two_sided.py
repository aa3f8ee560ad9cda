"""INTELLECT-2's two-sided clip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.clip import Clip
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class TwoSided(Clip):
    """PPO's clip that also zeroes the gradient where r > delta, for either sign of A (INTELLECT-2 2505.07291)."""

    name: ClassVar[str] = "two-sided"
    summary: ClassVar[str] = "token clip, and off above a ratio of 4 for either sign"
    reference: ClassVar[str] = "INTELLECT-2 2505.07291"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "c = A r, 0 where clipped or r>delta"
    differences: ClassVar[tuple[str, ...]] = ("TRL: off unless delta is set",)
    delta: float = number(4.0, minimum=1)

    def limits(self, advantage: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """The bounds of PPO and the ceiling."""
        below, above = super().limits(advantage, dtype)
        return below, above.clamp(max=self.delta)
