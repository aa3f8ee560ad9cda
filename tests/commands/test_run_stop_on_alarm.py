"""`run --stop-on-alarm` from the command line, through spawned workers, to the scoreboard."""

import json
from pathlib import Path

import pytest
from command_line import call

from vcpo_bench.analysis.monitoring.calibration import load_calibrations

RUN = ["run", "--methods", "clip", "--staleness", "1", "--seeds", "1", "--steps", "6", "--prompts", "2", "--jobs", "1"]
RUN += ["--responses", "4", "--task", "walk-eos", "--no-controls"]


@pytest.fixture
def clock_alarm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The packaged detectors are one that speaks after the third update."""
    entry = {"signal": "step", "window": 1, "threshold": 1.0, "persistence": 1, "study": "a test", "median_lead": None}
    entry |= {"false_alarms_per_1000_healthy_updates": None, "recall": None, "n_collapsed": 0, "n_healthy": 0}
    path = tmp_path / "detectors.json"
    path.write_text(json.dumps([entry]))
    monkeypatch.setattr(load_calibrations, "__defaults__", (path,))


@pytest.mark.usefixtures("clock_alarm")
def test_a_cell_stops_and_says_why(tmp_path: Path) -> None:
    out = tmp_path / "run"
    stopped = call(*RUN, "--out", str(out), "--stop-on-alarm")
    assert stopped.exit_code == 0, stopped.output
    said = "cells stop at the first alarm of step(window=1,threshold=1.0,persistence=1); rate not measured"
    assert said in stopped.output
    (cell,) = (out / "cells").iterdir()
    facts = json.loads((cell / "cell.json").read_text())
    assert (facts["status"], facts["steps_done"]) == ("stopped_by", 3)
    assert facts["reason"] == "alarm: step 2 > 1 at step 2"
    assert facts["config"]["stop"] == "step(window=1,threshold=1.0,persistence=1)"
    assert "1 cell, 0 to run" in call(*RUN, "--out", str(out), "--stop-on-alarm", "--dry-run").output
    board = json.loads(call("show", str(out), "--json").stdout)
    assert [row["stopped_by"] for row in board] == [1]
