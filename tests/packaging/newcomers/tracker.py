"""A tracker that keeps nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vcpo_bench.bench.outside.trackers.catalog import Connection, Rows, TrackedRun, Tracker


class _Run(TrackedRun):
    def log(self, rows: Rows) -> None:
        """Keep nothing."""

    def finish(self, facts: Mapping[str, Any], origin: Mapping[str, Any], failed: bool) -> None:
        """Keep nothing."""

    def interrupt(self) -> None:
        """Nothing is open."""


class _Connection(Connection):
    def start(self, key: str, config: Mapping[str, Any]) -> TrackedRun:
        """A run of which nothing is kept."""
        return _Run()


@dataclass(frozen=True, kw_only=True)
class Newcomer(Tracker):
    """Keeps nothing."""

    name = "newcomer"
    summary = "keeps nothing"

    def connect(self, folder: Path) -> Connection:
        """There is nothing to connect to."""
        return _Connection()
