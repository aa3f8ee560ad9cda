"""Trackers as a user names them, and a tracker that is one new file; the real ones run in `trackers.sh`."""

import json
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest
from command_line import refused

from vcpo_bench.bench.outside.mirror.process import Mirror
from vcpo_bench.bench.outside.trackers.catalog import TRACKERS
from vcpo_bench.bench.outside.trackers.trackio import TrackioConnection
from vcpo_bench.commands.support.tracking import check_trackers, read_trackers
from vcpo_bench.errors import UsageError
from vcpo_bench.naming.plugins import load_plugin

LINES = """
import json
from dataclasses import dataclass
from vcpo_bench.bench.outside.trackers.catalog import Connection, TrackedRun, Tracker

class Run(TrackedRun):
    def __init__(self, path):
        self.path = path
        path.write_text("")
    def log(self, rows):
        with self.path.open("a") as file:
            file.writelines(json.dumps([step, len(metrics)]) + "\\n" for step, metrics in rows)
    def finish(self, facts, origin, failed):
        with self.path.open("a") as file:
            file.write(json.dumps([facts["status"], failed]) + "\\n")
    def interrupt(self):
        pass

class Lines(Connection):
    def __init__(self, folder):
        self.folder = folder
    def start(self, key, config):
        return Run(self.folder / f"{key}.jsonl")

@dataclass(frozen=True, kw_only=True)
class LinesTracker(Tracker):
    name = "lines"
    summary = "a file of lines"
    package = extra = "json"
    def connect(self, folder):
        return Lines(folder / self.name)
"""


def test_a_list_names_trackers():
    texts = ["tensorboard", "trackio(project=lag)", "wandb(mode=online,project=mine)"]
    trackers = read_trackers(", ".join(texts))
    assert [one.text() for one in trackers] == texts
    said = shlex.split(trackers[2].command("my runs"))
    assert said == ["vcpo-bench", "results", "mirror", "my runs", "--to", texts[2]]
    assert read_trackers("") == []
    with pytest.raises(UsageError, match="tensorboard"):
        read_trackers("tensorbord")
    with pytest.raises(UsageError, match="wandb is named twice"):
        read_trackers("wandb,tensorboard,wandb(mode=online)")


@pytest.mark.parametrize("name", ["tensorboard", "mlflow", "trackio"])
def test_a_missing_package_is_refused_with_what_installs_it(monkeypatch, tmp_path, name):
    monkeypatch.setattr("vcpo_bench.commands.support.extras.find_spec", lambda package: None)
    with pytest.raises(UsageError, match=rf"pip install '\.\[{name}\]' in a checkout"):
        check_trackers(read_trackers(name))
    tracker = TRACKERS.parse(name)
    assert f"pip install '.[{name}]' in a checkout" in tracker.trouble(ModuleNotFoundError(name))
    out = tmp_path / "run"
    refused("run", "--report-to", name, "--out", str(out), "--quiet")
    assert not out.exists()


def test_a_detached_run_refuses_trackers(monkeypatch, tmp_path):
    monkeypatch.setattr("vcpo_bench.commands.support.extras.find_spec", lambda _: SimpleNamespace(origin="x"))
    flags = ["run", "--detach", "--report-to", "trackio", "--out", str(tmp_path), "--quiet"]
    assert f"vcpo-bench results mirror {tmp_path} --to trackio" in refused(*flags)


def test_a_tracker_of_ones_own_is_one_file(make_results, tmp_path):
    results = make_results(
        tmp_path / "run", methods=("vcpo", "clip"), lags=(1,), seeds=(0,), steps=30, shapes={"clip": "error"}
    )
    plugin = tmp_path / "lines.py"
    plugin.write_text(LINES)
    load_plugin(plugin)
    said: list[str] = []
    files = sorted((results / "cells").glob("*/cell.json"))
    cells = [
        SimpleNamespace(key=one["key"], config=SimpleNamespace(values=lambda one=one: one["config"]))
        for one in map(json.loads, map(Path.read_text, files))
    ]
    with Mirror(TRACKERS.parse("lines"), results, cells, said.append):
        pass
    assert said == []
    for path in files:
        facts = json.loads(path.read_text())
        *rows, ended = map(json.loads, (results / "lines" / f"{facts['key']}.jsonl").read_text().splitlines())
        assert [step for step, _ in rows] == list(range(len(rows)))
        assert len(rows) >= facts["steps_done"] > 0
        assert ended == [facts["status"], facts["status"] == "error"]


def test_rows_that_trackio_lost_are_an_error(monkeypatch):
    """It only warns, and goes on without them."""
    silent = SimpleNamespace(init=lambda *_, **__: SimpleNamespace(log=lambda *_, **__: None), finish=lambda: None)
    connection = TrackioConnection(silent, "project", "group")
    monkeypatch.setattr(connection, "next_step", lambda name: 0)
    with pytest.raises(OSError, match="did not write its database"):
        connection.write("run", {}, [(0, {"steps/reward": 1.0})])
