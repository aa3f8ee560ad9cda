"""What a run writes and every reader relies on: the files of a results folder and the columns of its tables.

Importing this package loads neither torch, numpy nor pandas. The columns of `steps.parquet` are in `records.steps`, one
small class each, with what computes them.
"""

import warnings
from importlib import import_module
from typing import TYPE_CHECKING

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
    "CELLS",
    "CELL_FILE",
    "EPISODES",
    "EPISODES_FILE",
    "EVALS",
    "EVALS_FILE",
    "EVENTS",
    "EVENTS_FILE",
    "GRID_FILE",
    "KEY_PATTERN",
    "LAGS",
    "LAGS_FILE",
    "LM_EVAL_SCORES",
    "ORIGINS_FOLDER",
    "PARTIAL_SUFFIX",
    "PROBES",
    "PROBES_FOLDER",
    "RULES_VERSION",
    "SAMPLES",
    "SAMPLES_FILE",
    "SCORES_FOLDER",
    "STATE_FILE",
    "STEPS_FILE",
    "SYNCHRONOUS",
    "Column",
    "Kind",
    "Level",
    "Status",
]

_RENAMED = {"SCORES": "vcpo_bench.records.LM_EVAL_SCORES", "STEPS": "vcpo_bench.records.steps.STEPS"}
"""Names of the version before and what they are now; each ends with the next version."""

if not TYPE_CHECKING:  # a type checker knows the present names only

    def __getattr__(name: str) -> object:
        if name not in _RENAMED:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module, _, present = _RENAMED[name].rpartition(".")
        text = f"vcpo_bench.records.{name} is now {_RENAMED[name]}; the old name ends with the next version"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return getattr(import_module(module), present)
