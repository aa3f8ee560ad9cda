"""The verdict: what was run, which method wins at each lag, and which runs failed."""

from __future__ import annotations

from vcpo_bench.analysis.collapse.sentences import OUTCOMES
from vcpo_bench.analysis.comparison.coverage import EXTENT, UNFINISHED
from vcpo_bench.analysis.comparison.sentences import RANKING
from vcpo_bench.analysis.findings import NOTE
from vcpo_bench.reports.document import Block
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.place import Place
from vcpo_bench.reports.sections.analysis_blocks import statements
from vcpo_bench.reports.study import Study

PLACE = Place("Verdict", 10)


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """Each statement stands with its interval, and those that limit the conclusions come first."""
    return [
        *statements(study, ledger, "coverage", EXTENT, UNFINISHED, bullets=False),
        *statements(study, ledger, "compare", NOTE, RANKING),
        *statements(study, ledger, "collapse", OUTCOMES),
    ]
