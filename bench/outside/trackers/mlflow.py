"""mlflow: a local database, shown by `mlflow ui`."""

from __future__ import annotations

import json
import logging
import os
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vcpo_bench.bench.outside.trackers.catalog import Connection, Rows, TrackedRun, Tracker
from vcpo_bench.naming.parameters import text

_AT_ONCE = 900
"""Metrics of one request: MLflow takes up to 1000."""


@dataclass(frozen=True, kw_only=True)
class MLflow(Tracker):
    """MLflow, in a database in `mlflow/` of the results folder; nothing leaves the machine.

    Numbers become metrics, the configuration becomes parameters, and how the cell ended becomes tags.

    Attributes:
        experiment: Its experiment.
    """

    name = "mlflow"
    summary = "MLflow's local database in the results folder"
    package = extra = "mlflow"
    experiment: str = text("vcpo-bench", legal="an experiment's name")

    @property
    def target(self) -> str:
        """The experiment."""
        return self.experiment

    def connect(self, folder: Path) -> MLflowConnection:
        """Import MLflow and open its database, which it makes where there is none."""
        os.environ |= {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_LOGGING_LEVEL": "WARNING"}
        from mlflow.tracking import MlflowClient

        logging.getLogger("alembic").setLevel(logging.WARNING)  # it too tells of each table it makes
        files = self.kept(folder.resolve())
        _make_database(files / "mlflow.db")
        client = MlflowClient(f"sqlite:///{files / 'mlflow.db'}")
        known = client.get_experiment_by_name(self.experiment)
        number = known.experiment_id if known else client.create_experiment(self.experiment, (files / "files").as_uri())
        return MLflowConnection(client, number)


def _make_database(path: Path) -> None:
    """Make a database where there is none: aside, since MLflow cannot go on with one that a kill left half made."""
    from mlflow.tracking import MlflowClient

    if path.exists():
        return
    with tempfile.TemporaryDirectory(dir=path.parent) as draft:
        whole = Path(draft) / path.name
        MlflowClient(f"sqlite:///{whole}").search_experiments()
        with suppress(FileExistsError):  # another process was faster
            os.link(whole, path)


class MLflowConnection(Connection):
    """One experiment of one database."""

    def __init__(self, client: Any, experiment: str) -> None:
        self._client, self._experiment = client, experiment

    def start(self, key: str, config: Mapping[str, Any]) -> TrackedRun:
        """A new run in place of one that an earlier mirror left unfinished."""
        named = f"attributes.run_name = {key!r}"
        for run in self._client.search_runs([self._experiment], named):
            self._client.delete_run(run.info.run_id)
        run = self._client.create_run(self._experiment, run_name=key)
        return _MLflowRun(self._client, run.info.run_id, {"key": key, **config})


class _MLflowRun(TrackedRun):
    def __init__(self, client: Any, number: str, config: Mapping[str, Any]) -> None:
        from mlflow.entities import Param

        self._client, self._number = client, number
        client.log_batch(number, params=[Param(name, _as_text(value)) for name, value in config.items()])

    def log(self, rows: Rows) -> None:
        from mlflow.entities import Metric

        now = int(1000 * time.time())
        metrics = [
            Metric(name, float(value), now, step)
            for step, numbers in rows
            for name, value in numbers.items()
            if isinstance(value, (int, float))
        ]
        for first in range(0, len(metrics), _AT_ONCE):
            self._client.log_batch(self._number, metrics=metrics[first : first + _AT_ONCE])

    def finish(self, facts: Mapping[str, Any], origin: Mapping[str, Any], failed: bool) -> None:
        from mlflow.entities import RunTag

        tags = {**{f"end_{name}": value for name, value in facts.items()}, **origin}
        self._client.log_batch(self._number, tags=[RunTag(name, _as_text(value)) for name, value in tags.items()])
        self._client.set_terminated(self._number, "FAILED" if failed else "FINISHED")

    def interrupt(self) -> None:
        self._client.set_terminated(self._number, "KILLED")


def _as_text(value: Any) -> str:
    """A value as MLflow's parameters and tags hold it."""
    return value if isinstance(value, str) else json.dumps(value, default=str)
