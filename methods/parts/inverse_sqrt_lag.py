"""A step divided by the square root of 1 + lag."""

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.methods.core.reach import Scope
from vcpo_bench.methods.parts.inverse_lag import LagStep
from vcpo_bench.naming.parameters import choice


@dataclass(frozen=True, kw_only=True)
class LagSqrtStep(LagStep):
    """scale = 1 / sqrt(1 + lag)."""

    name: ClassVar[str] = "inverse-sqrt-lag"
    sees: ClassVar[Scope] = Scope.BATCH
    reads: ClassVar[frozenset[str]] = frozenset({"version"})
    summary: ClassVar[str] = "step divided by the square root of 1 + lag"
    rule: str = choice("sqrt", "linear")
