"""Public names of the version before are read once more, and warn with the present ones."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

import pytest

import vcpo_bench.analysis
import vcpo_bench.methods
from vcpo_bench import records
from vcpo_bench.analysis.results import load
from vcpo_bench.records.steps import STEPS

MOVED = [
    ("vcpo_bench.methods.errors", "BatchError", vcpo_bench.methods.BatchError),
    ("vcpo_bench.methods.evidence", "Evidence", vcpo_bench.methods.EvidenceView),
    ("vcpo_bench.methods.batch", "Batch", vcpo_bench.methods.Batch),
    ("vcpo_bench.methods.registry", "load_plugin", vcpo_bench.methods.load_plugin),
    ("vcpo_bench.analysis.monitor", "Monitor", vcpo_bench.analysis.Monitor),
    ("vcpo_bench.records", "SCORES", records.LM_EVAL_SCORES),
    ("vcpo_bench.records", "STEPS", STEPS),
]


@pytest.mark.parametrize(("module", "name", "present"), MOVED)
def test_a_moved_name_is_found_where_it_was(module: str, name: str, present: object) -> None:
    with pytest.warns(DeprecationWarning, match=f"{module}.{name} is now vcpo_bench.*the old name ends"):
        assert getattr(importlib.import_module(module), name) is present


@pytest.mark.parametrize("name", ["AlarmPanel", "Alarm", "Calibration", "load_calibrations"])
def test_a_module_that_became_several_files_is_all_of_them(name: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"is now vcpo_bench.analysis.monitoring.*{name}"):
        assert getattr(importlib.import_module("vcpo_bench.analysis.alarms"), name).__name__ == name


@pytest.mark.parametrize("module", ["vcpo_bench.methods.errors", "vcpo_bench.analysis.alarms", "vcpo_bench.records"])
def test_a_name_that_never_was_is_an_attribute_error(module: str) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = importlib.import_module(module).nothing


def test_scores_of_lm_eval_are_read_by_their_old_name(make_results: Callable[..., Path], tmp_path: Path) -> None:
    results = load(make_results(tmp_path, ("vcpo",), (1,), (0,), 20, controls=False))
    with pytest.warns(DeprecationWarning, match=r"Results\.scores is now Results\.lm_eval"):
        assert results.scores is results.lm_eval
