"""The real TensorBoard, MLflow and trackio: what was written, read back; and targets that fail or never answer.

Runs in the environment that `.ci/integrations.d/trackers.sh` builds; skipped where the packages are absent.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import tracked_runs
from patience import within

pytest.importorskip(
    "tensorboard.backend.event_processing.event_accumulator",
    exc_type=ImportError,
    reason="runs in .ci/integrations trackers",
)
pytest.importorskip("mlflow", exc_type=ImportError, reason="runs in .ci/integrations trackers")
pytest.importorskip("trackio", exc_type=ImportError, reason="runs in .ci/integrations trackers")


@pytest.fixture(scope="module")
def mirrored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose command is killed once both trackers have part of it, and then run again."""
    root = tmp_path_factory.mktemp("trackers")
    out = root / "run"
    trackers = "tensorboard,mlflow,trackio(project=lag)"
    command = [*tracked_runs.RUN, "--steps", "30", "--out", str(out), "--report-to", trackers]
    database = out / "trackio" / "lag.db"
    tracked_runs.killed_once(
        command, root / "home", lambda: list(out.glob("tensorboard/*/events*")) and database.exists()
    )
    done = tracked_runs.run(30, out, trackers, root / "home")
    assert (done.returncode, done.stderr) == (0, "")
    return out


def recorded(out: Path) -> tuple[dict[str, Any], dict[int, dict[str, Any]]]:
    """The facts of the only cell, and its recorded numbers by update."""
    (cell,) = (out / "cells").iterdir()
    rows: dict[int, dict[str, Any]] = {}
    for name in ("steps", "evals"):
        for row in pq.read_table(cell / f"{name}.parquet").to_pylist():
            kept = rows.setdefault(row.pop("step"), {})
            for column, value in row.items():
                if isinstance(value, (int, float)) and math.isfinite(value):
                    kept[f"{name}/{column}"] = value
    return json.loads((cell / "cell.json").read_text()), rows


def test_tensorboard_has_every_recorded_number_once(mirrored: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    facts, rows = recorded(mirrored)
    (events,) = (mirrored / "tensorboard" / facts["key"]).glob("events*")
    reader = EventAccumulator(str(events), size_guidance={"scalars": 0, "tensors": 0})
    reader.Reload()
    found: dict[int, dict[str, float]] = {}
    for tag in reader.Tags()["scalars"]:
        for event in reader.Scalars(tag):
            assert tag not in found.setdefault(event.step, {})
            found[event.step][tag] = event.value
    assert sorted(found) == sorted(rows) == list(range(31))
    for step, wanted in rows.items():
        assert found[step] == pytest.approx({name: float(value) for name, value in wanted.items()}, rel=1e-6)
    (end,) = reader.Tensors("end")
    assert '"status": "completed"' in end.tensor_proto.string_val[0].decode()


def test_tensorboard_shows_settings_as_hyperparameters(mirrored: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams import metadata

    facts, _ = recorded(mirrored)
    reader = EventAccumulator(str(mirrored / "tensorboard" / facts["key"]))
    reader.Reload()
    content = reader.SummaryMetadata(metadata.SESSION_START_INFO_TAG).plugin_data.content
    settings = metadata.parse_session_start_info_plugin_data(content).hparams
    assert settings["staleness"].number_value == 2
    assert settings["method"].string_value == facts["config"]["method"]


def test_mlflow_has_every_recorded_number_once_with_settings_and_end(mirrored: Path) -> None:
    from mlflow.tracking import MlflowClient

    facts, rows = recorded(mirrored)
    client = MlflowClient(f"sqlite:///{mirrored / 'mlflow' / 'mlflow.db'}")
    (run,) = client.search_runs([client.get_experiment_by_name("vcpo-bench").experiment_id])
    assert (run.info.run_name, run.info.status) == (facts["key"], "FINISHED")
    assert (run.data.params["staleness"], run.data.tags["end_status"]) == ("2", "completed")
    found: dict[int, dict[str, float]] = {}
    for name in run.data.metrics:
        for metric in client.get_metric_history(run.info.run_id, name):
            assert name not in found.setdefault(metric.step, {})
            found[metric.step][name] = metric.value
    assert found == {step: {name: float(value) for name, value in wanted.items()} for step, wanted in rows.items()}


def test_trackio_has_every_recorded_number_once(mirrored: Path) -> None:
    facts, rows = recorded(mirrored)
    with sqlite3.connect(mirrored / "trackio" / "lag.db") as database:
        logged = database.execute("select step, metrics from metrics where run_name = ? order by id", [facts["key"]])
        found = [(step, json.loads(metrics)) for step, metrics in logged]
    *history, (last, end) = found
    assert [step for step, _ in history] == list(range(31))
    for step, metrics in history:
        assert {name: value for name, value in metrics.items() if not isinstance(value, str)} == rows[step]
    assert (last, end) == (30, {"end/steps_done": 30})


def test_trackio_knows_the_settings_and_how_the_cell_ended(mirrored: Path) -> None:
    facts, _ = recorded(mirrored)
    code = "import json, trackio; print(json.dumps([[one.name, one.config] for one in trackio.Api().runs('lag')]))"
    with_database = tracked_runs.environment(mirrored.parent / "home", TRACKIO_DIR=str(mirrored / "trackio"))
    done = subprocess.run(
        [sys.executable, "-c", code], env=with_database, check=True, capture_output=True, text=True, timeout=within(120)
    )
    ((name, config),) = json.loads(done.stdout.splitlines()[-1])
    assert name == facts["key"]
    assert (config["staleness"], config["end_status"], config["rules_version"]) == (
        2,
        "completed",
        facts["rules_version"],
    )


def test_nothing_is_written_outside_the_results_folder(mirrored: Path) -> None:
    home = mirrored.parent / "home"
    assert not [path for path in home.rglob("*") if path.name in ("trackio", "tensorboard", "mlflow", "mlruns")]


def test_the_command_mirrors_what_is_missing_only(mirrored: Path) -> None:
    tracked_runs.check_mirrors_what_is_missing_only(mirrored, "trackio(project=other)")


@pytest.mark.parametrize("name", ["tensorboard", "mlflow", "trackio"])
def test_a_target_that_cannot_be_written_costs_a_warning(tmp_path: Path, name: str) -> None:
    out = tmp_path / "run"
    (out / "cells").mkdir(parents=True)
    (out / name).touch()  # a file where the tracker's folder should be
    done = tracked_runs.run(30, out, name, tmp_path / "home")
    assert done.returncode == 0, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"warning: {name}: ")
    assert line.endswith(f"vcpo-bench results mirror {out} --to {name}")
    assert len(list((out / "cells").glob("*/cell.json"))) == 1


@pytest.mark.parametrize("name", ["tensorboard", "mlflow", "trackio"])
def test_a_tracker_that_hangs_costs_a_warning(tmp_path: Path, name: str) -> None:
    module = tmp_path / "fake" / name
    module.mkdir(parents=True)
    (module / "__init__.py").write_text("import time\ntime.sleep(3600)\n")
    path = os.pathsep.join([str(module.parent), os.environ.get("PYTHONPATH", "")])
    hurried = {"PYTHONPATH": path, "VCPO_BENCH_MIRROR_PATIENCE_SECONDS": "2"}
    done = tracked_runs.run(30, tmp_path / "run", name, tmp_path / "home", **hurried)
    assert done.returncode == 0, done.stderr
    (line,) = done.stderr.splitlines()
    assert f"{name}: no heartbeat for 2 seconds; the run continues without it" in line


def test_a_kill_while_mlflow_makes_its_database_does_no_harm(tmp_path: Path) -> None:
    out, home = tmp_path / "run", tmp_path / "home"
    command = [*tracked_runs.RUN, "--steps", "30", "--out", str(out), "--report-to", "mlflow"]
    tracked_runs.killed_once(command, home, lambda: list(out.glob("mlflow/*/mlflow.db")))
    assert not (out / "mlflow" / "mlflow.db").exists()
    done = tracked_runs.run(30, out, "mlflow", home)
    assert (done.returncode, done.stderr) == (0, "")
