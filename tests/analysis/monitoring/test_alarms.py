"""Alarms while a run trains: the bits of the recorded run, rates only where measured, and a text that survives."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from vcpo_bench.analysis.monitoring.alarm_panel import (
    AlarmPanel,
    Calibration,
    Rate,
    Rows,
    StopOnAlarm,
    load_calibrations,
    stop_default,
)
from vcpo_bench.analysis.monitoring.detectors import Detector, read_detector
from vcpo_bench.analysis.monitoring.signals import SIGNALS
from vcpo_bench.errors import UsageError
from vcpo_bench.records.steps import STEPS

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


def run(updates: int = 90, seed: int = 0) -> pd.DataFrame:
    """A recorded run with holes: values missing, infinite, and a column that was never recorded."""
    generator = np.random.default_rng(seed)
    table = pd.DataFrame({c.name: generator.random(updates) for c in STEPS if c.kind in ("float", "int")})
    table["step"] = np.arange(updates)
    table["grad_norm"] = np.exp(generator.normal(size=updates))
    table.loc[generator.random(updates) < 0.1, "ess_ratio"] = np.nan
    table.loc[generator.random(updates) < 0.05, "grad_norm"] = np.inf
    return table.drop(columns="token_ess_ratio")


def calibrated(detector: Detector) -> Calibration:
    return Calibration(detector, None, None, None, "nowhere", 3, 40)


@pytest.mark.parametrize("signal", SIGNALS)
def test_fed_one_update_at_a_time_alarms_are_those_of_the_recorded_run(signal: str) -> None:
    table = run()
    values = SIGNALS[signal].of(table.where(np.isfinite(table)))  # as tables are read back
    threshold = float(np.nanquantile(values, 0.6)) if np.isfinite(values).any() else 0.0
    detector = Detector(signal, window=4, threshold=threshold, persistence=2)
    panel, stop = AlarmPanel([calibrated(detector)]), StopOnAlarm(detector.text)
    spoken, followed, stopped = [], [], []
    for row in table.to_dict("records"):
        alarms = panel.feed(row)
        spoken.append(bool(alarms))
        followed.append(panel.values[signal])
        stopped.append(bool(stop.observe(row)))
        assert panel.silent == ((signal,) if np.isnan(panel.values[signal]) else ())
    np.testing.assert_array_equal(followed, values)
    np.testing.assert_array_equal(spoken, detector.alarms(values))
    assert stopped == spoken
    assert any(spoken) or signal == "token_ess"


def test_an_alarm_says_what_it_heard_and_how_often_it_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "detectors.json"
    path.write_text(json.dumps([ENTRY]))
    panel = AlarmPanel(load_calibrations(path))
    alarms = [panel.feed({"ess_ratio": 0.1}) for _ in range(2)]
    assert alarms[0] == ()
    assert str(alarms[1][0]) == (
        "ess (mean of 3 updates) 2.303 > 1.5 for 2 updates at step 1; false alarms per 1,000 healthy updates: "
        "2 [1, 4] (docs/studies/prediction: 20 collapsed and 40 healthy runs)"
    )


@pytest.mark.parametrize("few", ["n_collapsed", "n_healthy"])
def test_a_rate_from_too_few_runs_is_no_rate(tmp_path: Path, few: str) -> None:
    path = tmp_path / "detectors.json"
    path.write_text(json.dumps([ENTRY, ENTRY | {few: 14}]))
    enough, dropped = load_calibrations(path)
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
    with pytest.raises(UsageError, match="no signal is called 'esss'"):
        StopOnAlarm("esss(window=1,threshold=1.0,persistence=1)")


@pytest.mark.parametrize("threshold", [0.1 + 0.2, -1e-30, float("inf")])
def test_the_text_of_a_detector_is_exact(threshold: float) -> None:
    detector = Detector("grad_norm_z", 7, threshold, 3)
    assert read_detector(detector.text) == detector


@pytest.mark.parametrize(
    "text", ["ess", "ess(window=0,threshold=1.0,persistence=1)", "ess(window=1,threshold=x,persistence=1)"]
)
def test_a_text_that_is_no_detector_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="write SIGNAL"):
        read_detector(text)


@pytest.mark.parametrize(
    "name", ["ess", "tis", "grad_norm_z", "reward_drop", "reward_variance", "reward_autocorrelation"]
)
def test_late_in_a_long_run_a_signal_remembers_all_that_it_needs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vcpo_bench.analysis.monitoring.alarm_panel.RECENT", 1)
    table = run(updates=300)  # more than the rows are made for at first
    rows, signal = Rows(SIGNALS[name].columns), SIGNALS[name]
    latest = []
    for row in table.to_dict("records"):
        rows.append(row)
        latest.append(rows.latest(signal))
    np.testing.assert_allclose(latest, signal.of(table.where(np.isfinite(table))), rtol=1e-6, atol=1e-9)


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
    assert {SIGNALS[one.detector.signal].role for one in calibrations} & {"circumstance"} == set()
    for level in ("basic", "full"):
        assert StopOnAlarm(stop_default(level).detector.text).observe({"step": 0}) == ""
