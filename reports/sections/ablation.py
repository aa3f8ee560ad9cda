"""Which part of a method does the work: its halves, and the size or the timing of its steps."""

from __future__ import annotations

from vcpo_bench.analysis.comparison.effect_sentences import ABLATION
from vcpo_bench.reports.document import Block
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.place import Place
from vcpo_bench.reports.sections.analysis_blocks import statements
from vcpo_bench.reports.sections.comparison_tables import comparison_tables
from vcpo_bench.reports.study import Study

PLACE = Place("Which part does the work", 155)


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """Statements and the tables of effects."""
    return [
        *statements(study, ledger, "compare", ABLATION),
        *comparison_tables(study, ledger, "ablation", "step_controls"),
    ]
