"""trackio: a local database, shown by `trackio show`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from vcpo_bench.bench.outside.trackers.catalog import Connection, Rows, TrackedRun, Tracker
from vcpo_bench.naming.parameters import text


@dataclass(frozen=True, kw_only=True)
class Trackio(Tracker):
    """trackio, in a database in `trackio/` of the results folder; nothing leaves the machine.

    Attributes:
        project: Its project.
    """

    name = "trackio"
    summary = "trackio's local database in the results folder"
    package = extra = "trackio"
    project: str = text("vcpo-bench", legal="a project's name")

    @property
    def target(self) -> str:
        """The project."""
        return self.project

    def connect(self, folder: Path) -> TrackioConnection:
        """Import trackio, which learns at its import where its database is."""
        os.environ["TRACKIO_DIR"] = str(self.kept(folder))
        for remote in ("TRACKIO_SPACE_ID", "TRACKIO_SERVER_URL"):
            os.environ.pop(remote, None)
        import trackio

        return TrackioConnection(trackio, self.project, folder.name)


class TrackioConnection(Connection):
    """trackio for one results folder."""

    def __init__(self, trackio: Any, project: str, group: str) -> None:
        self._trackio, self._project, self._group = trackio, project, group

    def start(self, key: str, config: Mapping[str, Any]) -> TrackedRun:
        """A run of that name, or its continuation after the last update it has."""
        return _TrackioRun(self, key, {"key": key, **config})

    def write(self, name: str, config: Mapping[str, Any], rows: Rows) -> None:
        """Write rows at once: only one run of trackio is open at a time.

        Raises:
            OSError: The rows are not in the database. trackio itself only warns.
        """
        with redirect_stdout(StringIO()):  # it tells what it does
            run = self._trackio.init(
                self._project,
                name=name,
                group=self._group,
                config=dict(config),
                resume="allow",
                embed=False,
                auto_log_gpu=False,
                auto_log_cpu=False,
            )
            for step, metrics in rows:
                run.log(dict(metrics), step=step)
            self._trackio.finish()
        if rows and self.next_step(name) <= rows[-1][0]:
            raise OSError("trackio did not write its database; is the disk full, or the folder not writable?")

    def next_step(self, name: str) -> int:
        """First update that the database does not have for a run."""
        from trackio.sqlite_storage import SQLiteStorage

        last = SQLiteStorage.get_max_step_for_run(self._project, name)
        return 0 if last is None else int(last) + 1


class _TrackioRun(TrackedRun):
    def __init__(self, connection: TrackioConnection, name: str, config: Mapping[str, Any]) -> None:
        self._connection, self._name, self._config = connection, name, config
        self.first = connection.next_step(name)

    def log(self, rows: Rows) -> None:
        if rows:
            self._connection.write(self._name, self._config, rows)

    def finish(self, facts: Mapping[str, Any], origin: Mapping[str, Any], failed: bool) -> None:
        """Trackio has no summary, so how the cell ended joins the configuration, with a last row that carries it."""
        config = {**self._config, **origin, **{f"end_{name}": value for name, value in facts.items()}}
        last = max(self._connection.next_step(self._name) - 1, 0)
        self._connection.write(self._name, config, [(last, {"end/steps_done": facts["steps_done"] or 0})])

    def interrupt(self) -> None:
        """Nothing is held open between two batches of rows."""
