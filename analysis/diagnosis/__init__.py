"""What happened to a run that was trained anywhere: verdict, onset, order of signals, probable causes."""

from vcpo_bench.analysis.diagnosis.diagnose import diagnose
from vcpo_bench.analysis.diagnosis.diagnosis import Cause, Departure, Diagnosis, Outcome, Unseen
from vcpo_bench.analysis.logs import LoggedRun, Series, read_run

__all__ = ["Cause", "Departure", "Diagnosis", "LoggedRun", "Outcome", "Series", "Unseen", "diagnose", "read_run"]
