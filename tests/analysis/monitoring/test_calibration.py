"""Calibrations: rates only where they were measured, files that are wrong, and the packaged detectors."""

import json
from pathlib import Path

import pytest
from detector_entry import ENTRY

from vcpo_bench.analysis.monitoring.calibration import Rate, Union, load_calibrations, load_verdict_rates
from vcpo_bench.analysis.monitoring.signal import SIGNALS
from vcpo_bench.analysis.monitoring.stop_on_alarm import StopOnAlarm, stop_default
from vcpo_bench.errors import UsageError

ROOT = Path(__file__).parents[3]


def test_a_rate_from_too_few_runs_is_no_rate(tmp_path: Path) -> None:
    path = tmp_path / "detectors.json"
    path.write_text(json.dumps([ENTRY, ENTRY | {"n_healthy": 14}, ENTRY | {"n_collapsed": 14}]))
    enough, few_healthy, few_collapsed = load_calibrations(str(path))
    assert enough.false_alarms == few_collapsed.false_alarms == Rate(2.0, 1.0, 4.0)
    assert few_healthy.false_alarms is None
    for dropped in (few_healthy, few_collapsed):
        assert (dropped.recall, dropped.median_lead) == (None, None)
    assert few_healthy.words.startswith("rate not measured")


def test_what_is_said_of_all_detectors_of_a_file_together(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    whole = {
        "study": "a grid",
        "detectors": [ENTRY | {"healthy_alarmed": [0.06, 0.02, 0.12]}, ENTRY],
        "union": {"healthy_alarmed": [0.1, 0.05, 0.2], "recall": [0.7, 0.6, 0.8]},
        "verdict": {"found": [0.8, 0.7, 0.9], "false": [0.01, 0.0, 0.05], "n_collapsed": 43, "n_other": 99},
        "inputs": {"kl_mu_theta_k3": "staleness/kl_rollout_old"},
        "reward": "unit",
    }
    path.write_text(json.dumps(whole))
    first, second = load_calibrations(path)
    assert first.words == (
        "false alarms per 1,000 healthy updates: 2 [1, 4], in 6% [2, 12] of healthy runs (measured on "
        "docs/studies/calibration: 20 collapsed and 40 healthy runs); any of the 2 detectors: in 10% [5, 20] of "
        "healthy runs (a grid); not known here"
    )
    assert second.union == Union(2, Rate(0.1, 0.05, 0.2), Rate(0.7, 0.6, 0.8), "a grid")
    assert (second.reward, dict(second.inputs)) == ("unit", whole["inputs"])
    rates = load_verdict_rates(path)
    assert rates is not None
    assert "Measured elsewhere (a grid)" in rates.words
    assert "80% [70, 90] of 43 runs" in rates.words
    path.write_text(json.dumps([ENTRY]))
    assert load_verdict_rates(path) is None


@pytest.mark.parametrize("content", ["{", "{}", "[]", '[{"signal": "ess"}]', "[1]"])
def test_a_file_that_is_no_list_of_detectors_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "detectors.json"
    path.write_text(content)
    with pytest.raises(UsageError, match="no file of detectors"):
        load_calibrations(path)


@pytest.mark.parametrize(
    "wrong", [{"n_healthy": "many"}, {"window": None}, {"recall": [1, "half", 1]}, {"threshold": "low"}]
)
def test_a_field_of_another_type_is_named(tmp_path: Path, wrong: dict[str, object]) -> None:
    path = tmp_path / "detectors.json"
    path.write_text(json.dumps([ENTRY | wrong]))
    with pytest.raises(UsageError, match="no file of detectors"):
        load_calibrations(path)


@pytest.mark.parametrize(
    "wrong",
    [
        {"lengths": [1, "many"]},
        {"union": {"healthy_alarmed": [0.1, 0.0, 0.2], "recall": ["half", 0, 1]}},
        {"union": {"healthy_alarmed": [0.1, 0.0, 0.2], "recall": [0.5, 0, 1], "elsewhere": {"low": "x"}}},
    ],
)
def test_a_field_of_the_whole_of_another_type_is_named(tmp_path: Path, wrong: dict[str, object]) -> None:
    path = tmp_path / "detectors.json"
    path.write_text(json.dumps({"detectors": [ENTRY]} | wrong))
    with pytest.raises(UsageError, match="no file of detectors"):
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
    page = (ROOT / "docs" / "monitor.md").read_text(encoding="utf-8")
    for one in load_calibrations():
        assert one.healthy_alarmed is not None
        row = f"| `{one.detector.signal}` > {one.detector.threshold:.3g}, mean of {one.detector.window}"
        (line,) = [line for line in page.splitlines() if line.startswith(row)]
        assert f"| {one.healthy_alarmed.percent} |" in line
    assert one.union is not None
    assert one.union.healthy_alarmed is not None
    assert f"| **any of them** | | **{one.union.healthy_alarmed.percent}** |" in page


def test_the_packaged_detectors_are_measured_and_can_end_a_run() -> None:
    calibrations = load_calibrations()
    assert all(one.false_alarms and one.n_healthy >= 15 for one in calibrations)
    assert {SIGNALS.get(one.detector.signal).role for one in calibrations} & {"circumstance"} == set()
    for level in ("basic", "full"):
        assert StopOnAlarm(stop_default(level).detector.text).observe({"step": 0}) == ""
