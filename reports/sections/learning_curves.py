"""Held-out reward against updates."""

from __future__ import annotations

from vcpo_bench.reports.document import Block
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.sections.pictures import curves
from vcpo_bench.reports.study import Study


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """A figure of each task and regime."""
    return [*curves(study, "reward-steps")]
