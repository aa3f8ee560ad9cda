"""Judges recorded tables: ESS, tails, collapse, prediction; and runs while they train. No torch."""

from vcpo_bench.analysis.monitoring.monitor import Monitor, Reading

__all__ = ["Monitor", "Reading"]
