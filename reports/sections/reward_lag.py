"""Final reward against lag."""

from __future__ import annotations

from vcpo_bench.reports.document import Block
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.place import Place
from vcpo_bench.reports.plots.catalog import pictures
from vcpo_bench.reports.study import Study

PLACE = Place("Reward against lag", 40)


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """A figure of each task and regime."""
    return [*pictures(study, "reward-lag")]
