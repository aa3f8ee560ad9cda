"""Calibrations: rates only where they were measured, files that are wrong, and the packaged detectors."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
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
        "docs/studies/prediction: 20 collapsed and 40 healthy runs), any of the 2 detectors in 10% [5, 20] of healthy "
        "runs (a grid); not known here"
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


def tool() -> ModuleType:
    """The tool that writes the page; docs and tools are not beside the installed package."""
    spec = importlib.util.spec_from_file_location("make_calibration", ROOT / "tools" / "make_calibration.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_shows_the_packaged_detectors() -> None:
    written = (ROOT / "docs" / "monitor.md").read_text(encoding="utf-8")
    assert written == tool().page(written, load_calibrations()), "run: python tools/make_calibration.py --no-run"


def test_the_rate_of_all_packaged_detectors_is_that_of_the_shipped_table() -> None:
    union = load_calibrations()[0].union
    assert union is not None
    assert union.healthy_alarmed is not None
    parts = pd.read_csv(ROOT / "docs" / "studies" / "calibration" / "parts.csv").set_index("signal")
    row = parts.loc["any of them"]
    columns = ("healthy_alarmed", "healthy_alarmed_low", "healthy_alarmed_high")
    np.testing.assert_allclose(union.healthy_alarmed, [row[name] for name in columns], atol=1e-4)
    page = " ".join((ROOT / "docs" / "monitor.md").read_text(encoding="utf-8").split())
    assert f"fired in {union.healthy_alarmed.percent} of {row['n_healthy']:.0f} healthy runs" in page


def test_the_study_shows_its_tables() -> None:
    folder = ROOT / "docs" / "studies" / "calibration"
    page = (folder / "README.md").read_text(encoding="utf-8")
    for row in pd.read_csv(folder / "parts.csv").to_dict("records"):
        share = Rate(*(row[f"healthy_alarmed{end}"] for end in ("", "_low", "_high")))
        false = Rate(*(row[f"false_per_1000{end}"] for end in ("", "_low", "_high")))
        numbers = f"| {share.percent} | {false.value:.2g} [{false.low:.2g}, {false.high:.2g}] |"
        name = "any of the six" if row["signal"] == "any of them" else f"`{row['signal']}`"
        assert any(name in line and numbers in line for line in page.splitlines()), (name, numbers)
    verdict = pd.read_csv(folder / "verdict.csv").iloc[0]
    counts = [round(verdict["found"] * verdict["n_collapsed"]), verdict["n_collapsed"]]
    counts += [round(verdict["false"] * verdict["n_other"]), verdict["n_other"]]
    assert "found {:.0f} of {:.0f} failures and called {:.0f} of {:.0f} other runs".format(*counts) in page


def test_what_the_study_says_of_its_runs() -> None:
    folder = ROOT / "docs" / "studies" / "calibration"
    page = " ".join((folder / "README.md").read_text(encoding="utf-8").split())
    cells = pd.read_csv(folder / "cells.csv")
    runs = pd.read_csv(folder / "runs.csv").set_index("event")["runs"]
    assert cells["event"].value_counts().to_dict() == runs.to_dict()
    failed = cells[cells["onset"].notna()]
    early, soon = (failed["onset"] <= 20).sum(), (failed["onset"] <= 30).sum()
    assert f"{early} of {len(failed)} are found by update 20 and {soon} by update 30" in page
    assert f"{(failed['onset'] < failed['staleness']).sum()} fall before the lag they ask for" in page
    vcpo = cells[cells["method"] == "vcpo"]
    assert vcpo["onset"].isna().all()
    assert f"VCPO did not fail once in {len(vcpo)} runs" in page
    tasks = pd.read_csv(folder / "transfer.csv").set_index("signal").loc["any of them"]
    share = Rate(*(tasks[f"healthy_alarmed{end}"] for end in ("", "_low", "_high")))
    assert f"in {share.percent} of tasks that were held out" in page
    before = pd.read_csv(folder / "parts_previous.csv").set_index("signal").loc["any of them"]
    for name in ("recall", "healthy_alarmed"):
        assert Rate(*(before[f"{name}{end}"] for end in ("", "_low", "_high"))).percent in page


def test_the_packaged_detectors_are_measured_and_can_end_a_run() -> None:
    calibrations = load_calibrations()
    assert all(one.false_alarms and one.n_healthy >= 15 for one in calibrations)
    assert {SIGNALS.get(one.detector.signal).role for one in calibrations} & {"circumstance"} == set()
    for level in ("basic", "full"):
        assert StopOnAlarm(stop_default(level).detector.text).observe({"step": 0}) == ""
