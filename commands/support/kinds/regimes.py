"""Regimes."""

from __future__ import annotations

from vcpo_bench.commands.support.kinds.base import Listing, PageKind, facts


class RegimeKind(PageKind):
    """Staleness regimes with their options."""

    singular, plural = "regime", "regimes"

    def listing(self) -> Listing:
        """Every regime with its options; the note has those of all."""
        from vcpo_bench.bench.regimes.expression import COMMON, OPTIONS, SUMMARIES

        rows = [
            (name, SUMMARIES[name], "; ".join(f"{key} ({option.legal})" for key, option in options.items()) or "-")
            for name, options in OPTIONS.items()
        ]
        common = "; ".join(f"{key} ({option.legal})" for key, option in COMMON.items())
        return Listing((self.singular, "what it is", "parameters"), rows, f"Every regime also takes: {common}")

    def page(self, name: str) -> list[str]:
        """Its summary and options."""
        from vcpo_bench.bench.regimes.expression import COMMON, OPTIONS, SUMMARIES

        if name not in OPTIONS:
            raise self.unknown(name, OPTIONS)
        options = (OPTIONS[name] | COMMON).items()
        return [f"{name}: {SUMMARIES[name]}", *facts(("parameter", f"{key}  ({one.legal})") for key, one in options)]
