"""Regimes."""

from __future__ import annotations

from vcpo_bench.commands.support.kinds.from_catalog import CatalogKind


class RegimeKind(CatalogKind):
    """Staleness regimes with their options."""

    def __init__(self) -> None:
        super().__init__("regime", "regimes", "vcpo_bench.bench.regimes.regime")
