"""Tasks."""

from __future__ import annotations

from typing import Any

from vcpo_bench.commands.support.kinds.base import Listing
from vcpo_bench.commands.support.kinds.from_catalog import CatalogKind


class TaskKind(CatalogKind):
    """Tasks in tokens, for the built-in tiny policy, and text tasks, for language models."""

    def __init__(self) -> None:
        super().__init__("task", "tasks", "vcpo_bench.bench.tasks")

    def listing(self) -> Listing:
        """As for every catalog, and which policy a task trains."""
        listing = super().listing()
        text_tasks = {name for name in self.names() if self.catalog.get(name).needs_language_model}
        rows = [(*row, "language model" if row[0] in text_tasks else "tiny") for row in listing.rows]
        return Listing((*listing.columns, "policy"), rows, listing.note)

    def particulars(self, kind: Any) -> list[tuple[str, str]]:
        """Whether it needs a language model."""
        return [("needs", "a language model: --model" if kind.needs_language_model else "")]
