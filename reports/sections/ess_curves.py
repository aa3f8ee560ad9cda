"""Effective sample size and the tail of the weights over training."""

from __future__ import annotations

from vcpo_bench.analysis.diagnostics.weight_sentences import ESS, KL, TAILS
from vcpo_bench.analysis.findings import NOTE
from vcpo_bench.reports.document import Block
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.place import Place
from vcpo_bench.reports.plots.catalog import pictures
from vcpo_bench.reports.sections.analysis_blocks import statements
from vcpo_bench.reports.study import Study

PLACE = Place("Effective sample size", 130)


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """Statements, curves, and k-hat where trajectories were recorded."""
    return [
        *statements(study, ledger, "weights", ESS, KL, TAILS, NOTE),
        *pictures(study, "ess-steps", "log-weight-steps", "k-hat"),
    ]
