"""DAPO's clip-higher."""

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.methods.clip import Clip
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class ClipHigher(Clip):
    """PPO's clip with a wider upper bound, so that unlikely tokens can grow (DAPO 2503.14476, equation 10)."""

    name: ClassVar[str] = "clip-higher"
    summary: ClassVar[str] = "token clip with bounds 0.2 below and 0.28 above"
    reference: ClassVar[str] = "DAPO 2503.14476"
    year: ClassVar[int] = 2025
    known_as: ClassVar[tuple[str, ...]] = ("dapo",)
    paper_parts: ClassVar[str] = "zero-variance+grpo(eps=1e-6,std=sample)+token-mean"
    high: float = number(0.28, minimum=0)
