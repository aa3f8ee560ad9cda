"""Event logs: one line per thing that happened, several of them in one update, as Twinkle writes `metrics.jsonl`."""

from __future__ import annotations

from typing import Any

from vcpo_bench.analysis.logs.rows import LogRows
from vcpo_bench.analysis.logs.values import number, step_number

AXIS = "policy_version"


class Events:
    """Collects events and gives one row per policy version: each metric's mean over the events of one kind.

    A batch has many rollouts, each an event of its own; a row of a table is their mean.
    """

    def __init__(self) -> None:
        self._sums: dict[float, dict[str, tuple[float, int]]] = {}

    def take(self, row: dict[str, Any]) -> bool:
        """Take a line; False where it is no event."""
        kind, metrics = row.get("event"), row.get("metrics")
        if not isinstance(kind, str) or not isinstance(metrics, dict):
            return False
        step = step_number(row.get(AXIS))
        if step is None:
            return True
        sums = self._sums.setdefault(step, {})
        for name, raw in metrics.items():
            value = number(raw)
            if value is not None:
                total, count = sums.get(f"{kind}/{name}", (0.0, 0))
                sums[f"{kind}/{name}"] = total + value, count + 1
        return True

    def write(self, rows: LogRows, file: str) -> None:
        """Add the rows, in the order of versions."""
        for step in sorted(self._sums):
            row = {name: total / count for name, (total, count) in self._sums[step].items()}
            rows.add(row, file, step, AXIS)
