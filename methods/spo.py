"""SPO: PPO's clip replaced by a quadratic penalty on the ratio."""

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.methods.drpo import Drpo
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class Spo(Drpo):
    """c = A r (1 - sign(A) (r - 1) / eps): as DRPO with the same bound for every token (SPO 2401.16025)."""

    name: ClassVar[str] = "spo"
    summary: ClassVar[str] = "ratio with a quadratic penalty, no clip"
    reference: ClassVar[str] = "SPO 2401.16025"
    year: ClassVar[int] = 2024
    formula: ClassVar[str] = "c = A r - |A| r (r-1) / eps"
    differences: ClassVar[tuple[str, ...]] = ("eps: 0.2 in SPO, PPO's clip range; 12.5 in DRPO's comparison with it",)
    penalty: str = choice("ratio", "probability")
    eps: float = number(0.2, minimum=1e-8)
