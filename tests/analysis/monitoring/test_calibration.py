"""Calibrations: rates only where they were measured, files that are wrong, and the packaged detectors."""

import importlib.util
import json
from pathlib import Path

import pytest

from vcpo_bench.analysis.monitoring.calibration import Rate, load_calibrations
from vcpo_bench.analysis.monitoring.signal import SIGNALS
from vcpo_bench.analysis.monitoring.stop_on_alarm import StopOnAlarm, stop_default
from vcpo_bench.errors import UsageError

ENTRY = {
    "signal": "ess",
    "window": 3,
    "threshold": 1.5,
    "persistence": 2,
    "false_alarms_per_1000_healthy_updates": [2.0, 1.0, 4.0],
    "recall": [0.8, 0.6, 0.9],
    "median_lead": 30,
    "study": "docs/studies/prediction",
    "n_collapsed": 20,
    "n_healthy": 40,
}


@pytest.mark.parametrize("few", ["n_collapsed", "n_healthy"])
def test_a_rate_from_too_few_runs_is_no_rate(tmp_path: Path, few: str) -> None:
    path = tmp_path / "detectors.json"
    path.write_text(json.dumps([ENTRY, ENTRY | {few: 14}]))
    enough, dropped = load_calibrations(str(path))
    assert enough.false_alarms == Rate(2.0, 1.0, 4.0)
    assert (dropped.false_alarms, dropped.recall, dropped.median_lead) == (None, None, None)
    assert dropped.words.startswith("rate not measured")


@pytest.mark.parametrize("content", ["{", "{}", "[]", '[{"signal": "ess"}]', "[1]"])
def test_a_file_that_is_no_list_of_detectors_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "detectors.json"
    path.write_text(content)
    with pytest.raises(UsageError, match="not a file of detectors"):
        load_calibrations(path)


def test_unknown_signals_and_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load_calibrations(tmp_path / "none.json")
    with pytest.raises(UsageError, match="unknown signal 'esss'; did you mean ess"):
        StopOnAlarm("esss(window=1,threshold=1.0,persistence=1)")
    path = tmp_path / "detectors.json"
    path.write_text(json.dumps([ENTRY | {"signal": "esss"}]))
    with pytest.raises(UsageError, match="unknown signal 'esss'; did you mean ess"):
        load_calibrations(path)


def test_a_run_ends_on_the_best_detector_that_it_can_feed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "detectors.json"
    path.write_text(json.dumps([ENTRY | {"signal": "grad_cosine"}, ENTRY]))
    monkeypatch.setattr(load_calibrations, "__defaults__", (path,))
    assert stop_default("diagnostics").detector.signal == "grad_cosine"
    assert stop_default("basic").detector.signal == "ess"
    path.write_text(json.dumps([ENTRY | {"signal": "grad_cosine"}]))
    with pytest.raises(UsageError, match="add --record diagnostics"):
        stop_default("basic")


def test_the_page_shows_the_packaged_detectors() -> None:
    root = Path(__file__).parents[3]  # docs and tools are not beside the installed package
    tool = root / "tools" / "make_monitor_defaults.py"
    spec = importlib.util.spec_from_file_location("make_monitor_defaults", tool)
    assert spec
    assert spec.loader
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    written = (root / "docs" / "monitor.md").read_text(encoding="utf-8")
    assert written == generator.page(written, load_calibrations()), "run: python tools/make_monitor_defaults.py STUDY"


def test_the_packaged_detectors_are_measured_and_can_end_a_run() -> None:
    calibrations = load_calibrations()
    assert all(one.false_alarms and one.recall and one.n_collapsed >= 15 for one in calibrations)
    assert {SIGNALS.get(one.detector.signal).role for one in calibrations} & {"circumstance"} == set()
    for level in ("basic", "full"):
        assert StopOnAlarm(stop_default(level).detector.text).observe({"step": 0}) == ""
