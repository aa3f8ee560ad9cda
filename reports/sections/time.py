"""Time to target, and what an update costs."""

from __future__ import annotations

from vcpo_bench.analysis.comparison.effect_sentences import TIME
from vcpo_bench.reports.document import Block
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.place import Place
from vcpo_bench.reports.plots.catalog import pictures
from vcpo_bench.reports.sections.analysis_blocks import statements
from vcpo_bench.reports.sections.comparison_tables import comparison_tables
from vcpo_bench.reports.study import Study

PLACE = Place("Time to target and cost", 190)


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """Statements, time to target and to non-inferiority, phases of an update, and cost."""
    return [
        *statements(study, ledger, "compare", TIME),
        *comparison_tables(study, ledger, "targets", "non_inferiority"),
        *pictures(study, "phases"),
        *comparison_tables(study, ledger, "cost"),
    ]
