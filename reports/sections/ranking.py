"""Methods at their best learning rates: ranking, performance profiles, pairs, and the learning rates chosen."""

from __future__ import annotations

from vcpo_bench.analysis.comparison.sentences import TUNING
from vcpo_bench.reports.document import Block
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.place import Place
from vcpo_bench.reports.plots.catalog import pictures
from vcpo_bench.reports.sections.analysis_blocks import statements
from vcpo_bench.reports.sections.comparison_tables import comparison_tables
from vcpo_bench.reports.study import Study

PLACE = Place("Ranking", 30)


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """Statements, tables and the profiles."""
    return [
        *statements(study, ledger, "compare", TUNING),
        *comparison_tables(study, ledger, "ranking"),
        *pictures(study, "profiles"),
        *comparison_tables(study, ledger, "pairs", "choices"),
    ]
