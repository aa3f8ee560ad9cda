"""How long runs train before they fail."""

from __future__ import annotations

from vcpo_bench.analysis.collapse.sentences import SURVIVAL
from vcpo_bench.reports.document import Block
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.place import Place
from vcpo_bench.reports.plots.catalog import pictures
from vcpo_bench.reports.sections.analysis_blocks import statements
from vcpo_bench.reports.study import Study

PLACE = Place("Survival", 70, folded=False)


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """Statements and survival curves."""
    return [*statements(study, ledger, "collapse", SURVIVAL), *pictures(study, "survival")]
