"""`run --stop-on-alarm` from the command line, through spawned workers, to the scoreboard."""

import json
from pathlib import Path

import pytest
from command_line import call, call_here, refused

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


def test_what_show_prints_is_what_run_reads(tmp_path: Path) -> None:
    text = call("show", "detector", "ess").stdout.splitlines()[0]
    assert call("show", "detector", text).stdout == call("show", "detector", "ess").stdout
    planned = call(*RUN, "--out", str(tmp_path), "--detector", text, "--dry-run")
    assert planned.exit_code == 0, planned.output
    assert f"cells stop at the first alarm of {text}; false alarms per 1,000" in planned.output


def test_a_detector_of_ones_own_needs_no_calibration(tmp_path: Path) -> None:
    own = "step(window=1,threshold=2.0,persistence=1)"
    stopped = call_here(*RUN, "--out", str(tmp_path / "run"), "--detector", "step(window=1,threshold=2)")
    assert stopped.exit_code == 0, stopped.output
    assert f"cells stop at the first alarm of {own}; rate not measured (given by you" in stopped.output
    (cell,) = (tmp_path / "run" / "cells").iterdir()
    assert json.loads((cell / "cell.json").read_text())["config"]["stop"] == own


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("es(window=1,threshold=2)", "unknown signal 'es'; did you mean ess"),
        ("ess(window=1)", "threshold is missing"),
        ("ess(windw=1,threshold=2)", "no parameter 'windw'; did you mean window"),
        ("grad_cosine(window=1,threshold=2)", "needs the column grad_cosine; add --record diagnostics"),
    ],
)
def test_a_detector_that_cannot_be_used_is_one_line(text: str, said: str, tmp_path: Path) -> None:
    assert said in refused(*RUN, "--out", str(tmp_path), "--detector", text, "--dry-run")


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
