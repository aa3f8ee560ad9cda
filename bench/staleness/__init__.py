"""How lag comes about: the regimes, their expressions and their plans. Nothing here but `generation` needs torch."""

from vcpo_bench.bench.staleness.build import build_schedule, check_method
from vcpo_bench.bench.staleness.expression import Regime, parse_regime, regime_names
from vcpo_bench.bench.staleness.schedule import CellShape, Order, StalenessSchedule, Take

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
