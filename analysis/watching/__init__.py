"""Follows the log of a run that is still going on."""

from vcpo_bench.analysis.watching.follow import Follower
from vcpo_bench.analysis.watching.watch import RunEvent, RunWatch

__all__ = ["Follower", "RunEvent", "RunWatch"]
