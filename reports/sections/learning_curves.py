"""Held-out reward against updates."""

from __future__ import annotations

from vcpo_bench.reports.document import Block
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.place import Place
from vcpo_bench.reports.plots.catalog import pictures
from vcpo_bench.reports.study import Study

PLACE = Place("Learning curves", 50, folded=False)


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """A figure of each task and regime."""
    return [*pictures(study, "reward-steps")]
