"""How policy lag comes about: the regimes, their expressions and their schedules. Nothing here needs torch."""

from vcpo_bench.bench.regimes.base import BatchPerUpdate, CellShape, Order, StalenessSchedule, Take, check_method
from vcpo_bench.bench.regimes.regime import REGIMES, Regime

__all__ = ["REGIMES", "BatchPerUpdate", "CellShape", "Order", "Regime", "StalenessSchedule", "Take", "check_method"]
