"""The verdict: which method wins at each lag, which others it beats, and which runs failed."""

from __future__ import annotations

from vcpo_bench.analysis.collapse.sentences import OUTCOMES
from vcpo_bench.analysis.comparison.sentences import RANKING
from vcpo_bench.reports.document import Block
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.place import Place
from vcpo_bench.reports.sections.analysis_blocks import statements
from vcpo_bench.reports.study import Study

PLACE = Place("Verdict", 10)


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """Each statement stands with its interval."""
    return [
        *statements(study, ledger, "compare", RANKING),
        *statements(study, ledger, "collapse", OUTCOMES),
    ]
