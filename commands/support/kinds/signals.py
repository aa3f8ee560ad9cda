"""Signals: what detectors watch and `lab analyze prediction` judges."""

from __future__ import annotations

from typing import Any

from vcpo_bench.commands.support.kinds.from_catalog import CatalogKind


class SignalKind(CatalogKind):
    """Numbers per update that might warn of a collapse."""

    remarks = "looks at"

    def __init__(self) -> None:
        super().__init__("signal", "signals", "vcpo_bench.analysis.monitoring.signal", template=True)

    def remark(self, name: str) -> str:
        """What it looks at: weights, gradient ..."""
        role: str = self.catalog.get(name).role
        return role

    def particulars(self, kind: Any) -> list[tuple[str, str]]:
        """Columns it is computed from, and how far it looks back."""
        back = "to the beginning of the run" if kind.memory is None else f"over {kind.memory} updates"
        return [
            ("looks at", kind.role),
            ("columns", ", ".join(kind.columns)),
            ("looks back", "" if kind.memory == 1 else back),
        ]
