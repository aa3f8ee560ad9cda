"""PPO's clip with a ceiling for negative advantages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.clip import Clip
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class DualClip(Clip):
    """PPO's clip that also zeroes the gradient where A < 0 and r > cap (dual-clip PPO 1912.09729, equation 5)."""

    name: ClassVar[str] = "dual-clip"
    summary: ClassVar[str] = "token clip, and off for A < 0 with a ratio above 3"
    reference: ClassVar[str] = "dual-clip PPO 1912.09729"
    year: ClassVar[int] = 2019
    formula: ClassVar[str] = "c = A r, 0 where clipped, or A<0 and r>cap"
    differences: ClassVar[tuple[str, ...]] = (
        "cap: 3 and always on in verl (10 in DAPO scripts); off by default in slime, NeMo-RL, OpenRLHF, AReaL",
        "ROLL uses 1 + 2 x clip = 1.4 as the cap",
    )
    cap: float = number(3.0, minimum=1)

    def limits(self, advantage: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """The bounds of PPO and the ceiling."""
        below, above = super().limits(advantage, dtype)
        return below, torch.where(advantage < 0, self.cap, above)
