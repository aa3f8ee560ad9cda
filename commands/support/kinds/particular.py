"""Kinds of a catalog that say more of an entry than its class does: tasks, samplers, signals, analyses."""

from __future__ import annotations

from typing import Any

from vcpo_bench.commands.support.kinds.base import Listing
from vcpo_bench.commands.support.kinds.from_catalog import CatalogKind
from vcpo_bench.naming.component import Component


class TaskKind(CatalogKind):
    """Tasks in tokens, for the built-in tiny policy, and text tasks, for language models."""

    def __init__(self) -> None:
        super().__init__("task", "tasks", "vcpo_bench.bench.tasks", template=True)

    def listing(self) -> Listing:
        """As for every catalog, and which policy of what size a task suits."""
        listing = super().listing()
        suited = {name: self.catalog.get(name).suits for name in self.names()}
        rows = [(row[0], suited.get(row[0], ""), *row[1:]) for row in listing.rows]
        options = "shots=0 (solved examples in the prompt), system= (a system prompt)"
        note = f"LM: a language model (--model), with its least size. Every text task also takes: {options}"
        return Listing((listing.columns[0], "policy", *listing.columns[1:]), rows, note)

    def particulars(self, kind: Any) -> list[tuple[str, str]]:
        """Whether it needs a language model."""
        return [("needs", "a language model: --model" if kind.needs_language_model else "")]


class SamplerKind(CatalogKind):
    """Ways to draw responses from a policy."""

    def __init__(self) -> None:
        super().__init__("sampler", "samplers", "vcpo_bench.bench.samplers.catalog")

    def particulars(self, kind: Any) -> list[tuple[str, str]]:
        """What it needs, and whether its cells can be replayed."""
        exact = "its cells can be replayed bit for bit (probe, fork)"
        return [
            ("needs", "a language model: --model" if kind.needs_language_model else ""),
            ("exact", exact if kind.exact else "no: its cells cannot be replayed (probe, fork)"),
        ]


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


class AnalysisKind(CatalogKind):
    """The analyses of recorded runs."""

    def __init__(self) -> None:
        super().__init__("analysis", "analyses", "vcpo_bench.analysis.commands")

    def particulars(self, kind: type[Component]) -> list[tuple[str, str]]:
        """How to run it."""
        return [("run", f"vcpo-bench lab analyze {kind.name} DIR...")]
