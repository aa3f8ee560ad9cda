"""Whether the requested lag was realized."""

from __future__ import annotations

from functools import partial

from vcpo_bench.reports.document import Block, Picture
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.place import Place
from vcpo_bench.reports.plots.lag_axis import realized_lag
from vcpo_bench.reports.study import Study

PLACE = Place("Realized lag", 130)


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """Histograms of realized lags."""
    return [Picture("realized-lag", partial(realized_lag, study), wide=True)]
