"""Reads the logs of other trainers: files to rows, foreign names to our columns. No torch."""

from vcpo_bench.analysis.logs.read import read_run
from vcpo_bench.analysis.logs.run import LoggedRun, Series

__all__ = ["LoggedRun", "Series", "read_run"]
