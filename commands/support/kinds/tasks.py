"""Tasks."""

from __future__ import annotations

from typing import Any

from vcpo_bench.commands.support.kinds.base import Listing
from vcpo_bench.commands.support.kinds.from_catalog import CatalogKind


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
