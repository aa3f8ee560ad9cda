"""How lag comes about: the regimes, their expressions and their plans. Nothing here but `generation` needs torch."""

from vcpo_bench.bench.regimes.base import CellShape, Order, StalenessSchedule, Take
from vcpo_bench.bench.regimes.build import build_schedule, check_method
from vcpo_bench.bench.regimes.expression import Regime, parse_regime, regime_names

__all__ = [
    "CellShape",
    "Order",
    "Regime",
    "StalenessSchedule",
    "Take",
    "build_schedule",
    "check_method",
    "parse_regime",
    "regime_names",
]
