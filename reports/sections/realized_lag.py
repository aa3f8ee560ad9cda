"""Whether the requested lag was realized."""

from __future__ import annotations

from vcpo_bench.reports.document import Block
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.place import Place
from vcpo_bench.reports.plots.catalog import pictures
from vcpo_bench.reports.study import Study

PLACE = Place("Realized lag", 170)


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """Histograms of realized lags."""
    return [*pictures(study, "realized-lag")]
