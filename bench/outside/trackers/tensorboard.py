"""tensorboard: event files, one folder per cell."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vcpo_bench.bench.outside.trackers.catalog import Connection, Rows, TrackedRun, Tracker


@dataclass(frozen=True, kw_only=True)
class TensorBoard(Tracker):
    """TensorBoard event files in `tensorboard/KEY` of the results folder, written by TensorBoard's own writer.

    Numbers become scalars (32-bit floats, as everywhere in TensorBoard); the configuration becomes hyperparameters, and
    how the cell ended becomes a text.
    """

    name = "tensorboard"
    summary = "TensorBoard event files in the results folder"
    package = extra = "tensorboard"

    def connect(self, folder: Path) -> TensorBoardConnection:
        """Import the writer; it needs neither TensorFlow nor torch."""
        from tensorboard.summary.writer import event_file_writer  # noqa: F401  # absent: say so before the first cell

        return TensorBoardConnection(self.kept(folder))


class TensorBoardConnection(Connection):
    """Event files below one folder."""

    def __init__(self, files: Path) -> None:
        self._files = files

    def start(self, key: str, config: Mapping[str, Any]) -> TrackedRun:
        """A new event file in place of one that an earlier mirror left unfinished."""
        folder = self._files / key
        if folder.exists():
            shutil.rmtree(folder)
        return _EventFile(folder, config)


class _EventFile(TrackedRun):
    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        from tensorboard.plugins.hparams.summary_v2 import hparams_pb
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._writer = EventFileWriter(str(folder))
        self._add(hparams_pb({name: _setting(value) for name, value in config.items()}, trial_id=folder.name), 0)

    def log(self, rows: Rows) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary

        for step, metrics in rows:
            numbers = {name: value for name, value in metrics.items() if isinstance(value, (int, float))}
            values = [Summary.Value(tag=name, simple_value=float(value)) for name, value in numbers.items()]
            self._add(Summary(value=values), step)
        self._writer.flush()

    def finish(self, facts: Mapping[str, Any], origin: Mapping[str, Any], failed: bool) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
        from tensorboard.compat.proto.tensor_pb2 import TensorProto
        from tensorboard.compat.proto.types_pb2 import DT_STRING

        told = json.dumps({**facts, **origin}, indent=1, default=str).replace("\n", "\n    ")
        text = TensorProto(dtype=DT_STRING, string_val=[f"    {told}".encode()])
        kind = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
        self._add(Summary(value=[Summary.Value(tag="end", metadata=kind, tensor=text)]), int(facts["steps_done"] or 0))
        self._writer.flush()  # raises what a write failed with
        self._writer.close()

    def interrupt(self) -> None:
        self._writer.close()

    def _add(self, summary: Any, step: int) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        self._writer.add_event(Event(wall_time=time.time(), step=step, summary=summary))


def _setting(value: Any) -> bool | int | float | str:
    """A value as TensorBoard's hyperparameters can hold it."""
    return value if isinstance(value, (bool, int, float, str)) else json.dumps(value, default=str)
