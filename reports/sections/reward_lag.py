"""Final reward against lag."""

from __future__ import annotations

from vcpo_bench.reports.document import Block
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.place import Place
from vcpo_bench.reports.plots.catalog import pictures
from vcpo_bench.reports.sections.in_short import leading
from vcpo_bench.reports.study import Study

PLACE = Place("Reward against lag", 128)


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """A figure of each task and regime, unless the report begins with it."""
    return [] if leading(study) == "reward-lag" else [*pictures(study, "reward-lag")]
