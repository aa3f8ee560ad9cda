"""Methods at their best learning rates: ranking, performance profiles, pairs, and the learning rates chosen."""

from __future__ import annotations

from vcpo_bench.analysis.comparison.answers import ANSWER, BY_TASK, DISAGREEMENT
from vcpo_bench.analysis.comparison.sentences import RANKING, TUNING
from vcpo_bench.analysis.findings import NOTE
from vcpo_bench.reports.document import Block
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.place import Place
from vcpo_bench.reports.plots.catalog import pictures
from vcpo_bench.reports.sections.analysis_blocks import statements
from vcpo_bench.reports.sections.comparison_tables import comparison_tables
from vcpo_bench.reports.sections.in_short import MOST_ANSWERS, leading
from vcpo_bench.reports.study import Study

PLACE = Place("Ranking", 30, folded=False)


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """Statements, tables and the profiles."""
    found = study.findings("compare")
    several = len(found.about(ANSWER)) > MOST_ANSWERS or found.about(DISAGREEMENT)
    answers = [ANSWER] if several else []  # else all of them stand on the first screen
    return [
        *statements(study, ledger, "compare", BY_TASK, *answers, RANKING, TUNING, NOTE),
        *([] if leading(study) == "score-lag" else pictures(study, "score-lag")),
        *comparison_tables(study, ledger, "ranking"),
        *pictures(study, "profiles"),
        *comparison_tables(study, ledger, "pairs", "choices"),
    ]
