"""What a run writes and every reader relies on: the files of a results folder and the columns of its tables.

Importing this package loads neither torch, numpy nor pandas. The columns of `steps.parquet` are in `records.steps`, one
small class each, with what computes them.
"""

from vcpo_bench.records.column import Column, Kind, Level
from vcpo_bench.records.layout import (
    CELL_FILE,
    CELLS,
    EPISODES_FILE,
    EVALS_FILE,
    EVENTS_FILE,
    GRID_FILE,
    KEY_PATTERN,
    LAGS_FILE,
    ORIGINS_FOLDER,
    PARTIAL_SUFFIX,
    PROBES_FOLDER,
    RULES_VERSION,
    SAMPLES_FILE,
    SCORES_FOLDER,
    STATE_FILE,
    STEPS_FILE,
    SYNCHRONOUS,
    Status,
)
from vcpo_bench.records.tables import EPISODES, EVALS, EVENTS, LAGS, LM_EVAL_SCORES, PROBES, SAMPLES

__all__ = [
    "CELLS", "CELL_FILE", "EPISODES", "EPISODES_FILE", "EVALS", "EVALS_FILE", "EVENTS", "EVENTS_FILE", "GRID_FILE",
    "KEY_PATTERN", "LAGS", "LAGS_FILE", "LM_EVAL_SCORES", "ORIGINS_FOLDER", "PARTIAL_SUFFIX", "PROBES",
    "PROBES_FOLDER", "RULES_VERSION", "SAMPLES", "SAMPLES_FILE", "SCORES_FOLDER", "STATE_FILE", "STEPS_FILE",
    "SYNCHRONOUS", "Column", "Kind", "Level", "Status",
]  # fmt: skip
