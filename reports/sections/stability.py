"""Which learning rates each method survives at which lag."""

from __future__ import annotations

from vcpo_bench.analysis.comparison.effect_sentences import STABILITY
from vcpo_bench.reports.document import Block
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.place import Place
from vcpo_bench.reports.plots.catalog import pictures
from vcpo_bench.reports.sections.analysis_blocks import statements
from vcpo_bench.reports.sections.comparison_tables import comparison_tables
from vcpo_bench.reports.study import Study

PLACE = Place("Stability by lag and learning rate", 150)


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """Statements, maps, and the tables behind them."""
    return [
        *statements(study, ledger, "compare", STABILITY),
        *pictures(study, "stability"),
        *comparison_tables(study, ledger, "stable_rates", "frontier"),
    ]
