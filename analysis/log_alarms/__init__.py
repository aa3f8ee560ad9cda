"""The detectors of the monitor on the log of any trainer."""

from vcpo_bench.analysis.log_alarms.find import AlarmReport, RunAlarm, find_alarms

__all__ = ["AlarmReport", "RunAlarm", "find_alarms"]
