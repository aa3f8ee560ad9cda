"""A-3PO: decoupled PPO whose proximal policy is interpolated, not recomputed."""

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.methods.decoupled import Decoupled
from vcpo_bench.naming.parameters import choice


@dataclass(frozen=True, kw_only=True)
class A3po(Decoupled):
    """Decoupled PPO with log prox = log mu + a (log pi - log mu), a = (d - 1) / d at lag d (A-3PO 2512.06547).

    At lag 0 and 1 the proximal policy is the behavior policy; the older the token, the nearer it is to the current.
    """

    name: ClassVar[str] = "a3po"
    summary: ClassVar[str] = "clip around a proximal policy interpolated by lag, times the ratio proximal/behavior"
    reference: ClassVar[str] = "A-3PO 2512.06547; AReaL loglinear"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "c = A min(rho, cap) r, 0 where clipped; r = (pi/mu)^(1/d), rho = (pi/mu)^(1-1/d), d lag"
    differences: ClassVar[tuple[str, ...]] = ("AReaL calls it loglinear; other choices: decoupled(proximal=...)",)
    proximal: str = choice("loglinear", "linear", "behavior", "given")
