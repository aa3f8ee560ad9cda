"""Threats to validity that can be read off the cells."""

from __future__ import annotations

from vcpo_bench.analysis.comparison.coverage import THREAT
from vcpo_bench.analysis.findings import NOTE
from vcpo_bench.reports.document import Block
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.place import Place
from vcpo_bench.reports.sections.analysis_blocks import statements
from vcpo_bench.reports.study import Study

PLACE = Place("Threats to validity", 120, folded=False)


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """What makes cells hard to compare, then what the study as a whole lacks."""
    return [*statements(study, ledger, "caveats", NOTE), *statements(study, ledger, "coverage", THREAT)]
