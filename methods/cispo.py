"""CISPO: the clipped ratio as a detached weight, so that no token loses its gradient."""

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.methods.tis import Tis
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class Cispo(Tis):
    """c = A clip(r, low, cap), detached (MiniMax-M1 2506.13585; ScaleRL 2510.13786). Bounds are absolute."""

    name: ClassVar[str] = "cispo"
    summary: ClassVar[str] = "detached token ratio clipped to 0..5; never zeroes a gradient"
    reference: ClassVar[str] = "MiniMax-M1 2506.13585; ScaleRL 2510.13786"
    known_as: ClassVar[tuple[str, ...]] = ("cispo-anchor",)
    formula: ClassVar[str] = "c = A clip(r, low, cap)"
    differences: ClassVar[tuple[str, ...]] = (
        "TRL: absolute cap, which falls back to 0.2 when unset and then scales every gradient by at most 0.2",
        "verl, slime, SkyRL, NeMo-RL: offsets from 1; verl keeps the lower bound 0.8 active by default",
        "open-instruct: upper bound only, 1.272; ROLL: 0.9..1.1; Tinker: absolute 0..4",
    )
    paper_parts: ClassVar[str] = "grpo(eps=1e-6,std=sample)+token-mean"
    level: str = choice("token", "sequence", "geometric", "segment")
    cap: float = number(5.0, minimum=0)
