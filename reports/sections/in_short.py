"""The first screen: the answer at each lag, the one figure, how sure it is, and what to run next."""

from __future__ import annotations

from vcpo_bench.analysis.comparison.answers import ANSWER, BY_TASK, DISAGREEMENT, NEXT
from vcpo_bench.analysis.comparison.coverage import EXTENT, UNFINISHED
from vcpo_bench.analysis.findings import NOTE
from vcpo_bench.reports.document import Block
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.place import Place
from vcpo_bench.reports.plots.catalog import pictures
from vcpo_bench.reports.sections.analysis_blocks import statements
from vcpo_bench.reports.study import Study

PLACE = Place("In short", 5)


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """What was run; the answers; the figure; what limits them; what comes next."""
    return [
        *statements(study, ledger, "coverage", EXTENT, UNFINISHED, bullets=False),
        *statements(study, ledger, "compare", BY_TASK, ANSWER, DISAGREEMENT),
        *pictures(study, "score-lag"),
        *statements(study, ledger, "compare", NOTE, NEXT),
    ]
