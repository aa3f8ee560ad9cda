"""Analyses: what `vcpo-bench analyze NAME` can do."""

from __future__ import annotations

from vcpo_bench.commands.support.kinds.base import Listing, PageKind, facts, heading


class AnalysisKind(PageKind):
    """The analyses of recorded runs."""

    singular, plural = "analysis", "analyses"

    def listing(self) -> Listing:
        """Name of each and the question it answers."""
        from vcpo_bench.analysis.commands import analyses

        return Listing((self.singular, "what it answers"), [(one.name, one.summary) for one in analyses().values()])

    def page(self, name: str) -> list[str]:
        """The question, and how to run it."""
        from vcpo_bench.analysis.commands import analyses

        known = analyses()
        if name not in known:
            raise self.unknown(name, known)
        return [*heading(name, known[name].summary), *facts([("run", f"vcpo-bench analyze {name} DIR...")])]
