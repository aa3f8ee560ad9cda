"""ESS and collapse: a map of every cell, and what measurements do around the onset of a failure."""

from __future__ import annotations

from vcpo_bench.reports.document import Block
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.place import Place
from vcpo_bench.reports.plots.catalog import pictures
from vcpo_bench.reports.study import Study

PLACE = Place("ESS and collapse", 60, folded=False)


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """The maps, then the measurements aligned at the onset."""
    return [*pictures(study, "ess-map", "ess-vs-collapse", "ess-vs-collapse-runs", "ess-vs-collapse-roc")]
