"""`vcpo-bench lab calibrate`, and its file in `diagnose` and `watch`."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from command_line import call, refused
from foreign_runs import planted, rows_of, write_jsonl

from vcpo_bench.analysis.calibrating import report


@pytest.fixture
def logs(tmp_path: Path) -> list[str]:
    causes = ["healthy"] * 15 + ["lag and weights"]
    paths = [tmp_path / f"{number}.jsonl" for number in range(len(causes))]
    for number, (path, cause) in enumerate(zip(paths, causes, strict=True)):
        write_jsonl(path, rows_of(planted(cause, seed=number), "vcpo-fork"))
    return [str(path) for path in paths]


def test_a_file_of_ones_own_runs_is_used_by_the_other_verbs(logs: list[str], tmp_path: Path) -> None:
    out, tables = tmp_path / "ours.json", tmp_path / "tables"
    result = call("lab", "calibrate", *logs, "--out", str(out), "--name", "ours", "--tables", str(tables))
    assert result.exit_code == 0, result.output
    assert "15 healthy at a lag of 2 or more" in result.output
    assert set(pd.read_csv(tables / "runs.csv")["event"]) == {"healthy", "collapse"}
    found = call("diagnose", logs[-1], "--calibration", str(out))
    assert found.exit_code == 0, found.output
    assert "Alarms of the calibration (warnings; their rates were measured elsewhere)" in found.output
    assert "measured on ours" in found.output
    answer = json.loads(call("diagnose", logs[-1], "--calibration", str(out), "--json").output)
    assert {120.0} <= {one["step"] for one in answer["alarms"]["raised"]}
    page = tmp_path / "page.html"
    call("diagnose", logs[-1], "--calibration", str(out), "--html", str(page))
    assert "Alarms of the calibration" in page.read_text()
    watched = call("watch", logs[-1], "--calibration", str(out), "--every", "0.05", "--idle", "0.1")
    assert watched.exit_code == 1
    assert "measured on ours" in watched.stderr


def test_no_cell_of_a_table_is_a_formula(logs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = report.calibrate

    def calibrate(*arguments: Any) -> Any:
        found = real(*arguments)
        return replace(found, runs=found.runs.assign(event="=1+1"))

    monkeypatch.setattr(report, "calibrate", calibrate)
    result = call("lab", "calibrate", *logs, "--out", str(tmp_path / "x.json"), "--tables", str(tmp_path / "tables"))
    assert result.exit_code == 0, result.output
    assert set(pd.read_csv(tmp_path / "tables" / "runs.csv")["event"]) == {"'=1+1"}


def test_packaged_detectors_are_measured_as_they_are(logs: list[str], tmp_path: Path) -> None:
    out = tmp_path / "packaged.json"
    result = call("lab", "calibrate", *logs, "--detectors", "packaged", "--out", str(out))
    assert result.exit_code == 0, result.output
    packaged = json.loads((Path(__file__).parents[2] / "analysis/monitoring/default_detectors.json").read_text())
    thresholds = [one["threshold"] for one in json.loads(out.read_text())["detectors"]]
    assert thresholds == [one["threshold"] for one in packaged["detectors"]]


def test_bad_input_is_one_line(logs: list[str], tmp_path: Path) -> None:
    (tmp_path / "results" / "cells").mkdir(parents=True)
    for arguments, said in (
        ([logs[0], str(tmp_path / "results")], "cannot be calibrated together"),
        ([logs[-1]], "no run counts as healthy"),
        ([logs[0], "--detectors", "none.json"], "cannot be read"),
    ):
        assert said in refused("lab", "calibrate", *arguments, "--out", str(tmp_path / "x.json"))
        assert not (tmp_path / "x.json").exists()
