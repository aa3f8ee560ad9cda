"""Judges recorded tables: ESS, tails, collapse, prediction; and runs while they train. No torch."""

from vcpo_bench.analysis.monitoring.monitor import Monitor, Reading
from vcpo_bench.naming.moved import keep_moved_modules

__all__ = ["Monitor", "Reading"]

_MONITORING = "vcpo_bench.analysis.monitoring"
keep_moved_modules(
    {
        "vcpo_bench.analysis.monitor": [f"{_MONITORING}.monitor"],
        "vcpo_bench.analysis.alarms": [f"{_MONITORING}.{file}" for file in ("alarm_panel", "calibration")],
    }
)
