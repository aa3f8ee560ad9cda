"""Analyses: what `vcpo-bench lab analyze NAME` can do."""

from __future__ import annotations

from vcpo_bench.commands.support.kinds.from_catalog import CatalogKind
from vcpo_bench.naming.component import Component


class AnalysisKind(CatalogKind):
    """The analyses of recorded runs."""

    def __init__(self) -> None:
        super().__init__("analysis", "analyses", "vcpo_bench.analysis.commands")

    def particulars(self, kind: type[Component]) -> list[tuple[str, str]]:
        """How to run it."""
        return [("run", f"vcpo-bench lab analyze {kind.name} DIR...")]
