"""Effective sample size and the tail of the weights over training."""

from __future__ import annotations

from functools import partial

from vcpo_bench.analysis.diagnostics.weight_sentences import ESS, KL, TAILS
from vcpo_bench.analysis.findings import NOTE
from vcpo_bench.reports.document import Block, Picture
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.place import Place
from vcpo_bench.reports.plots.pareto_tail import pareto_k
from vcpo_bench.reports.sections.analysis_blocks import statements
from vcpo_bench.reports.sections.pictures import curves
from vcpo_bench.reports.study import Study

PLACE = Place("Effective sample size", 80)


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """Statements, curves, and k-hat where trajectories were recorded."""
    return [
        *statements(study, ledger, "weights", ESS, KL, TAILS, NOTE),
        *curves(study, "ess-steps", "log-weight-steps"),
        Picture("k-hat", partial(pareto_k, study), wide=True),
    ]
