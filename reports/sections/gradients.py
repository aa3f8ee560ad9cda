"""Gradient norms, and how the update is shared among trajectories."""

from __future__ import annotations

from vcpo_bench.analysis.diagnostics.gradient_sentences import CONTRIBUTIONS, NORMS
from vcpo_bench.analysis.findings import NOTE
from vcpo_bench.reports.document import Block
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.plots.catalog import pictures
from vcpo_bench.reports.report_section import ReportSection
from vcpo_bench.reports.sections.analysis_blocks import Layout, Shown, analysis_table, statements
from vcpo_bench.reports.study import Study

_LAYOUT = Layout(
    "contribution_medians",
    "How the update is shared among trajectories, medians over recorded updates: share of the largest trajectory in "
    "the summed gradient norms, Gini coefficient of these norms (0: all equal), and variance of the mean gradient over "
    "its squared norm.",
    {
        "task": Shown("task", "name"),
        "regime": Shown("regime", "name"),
        "lr": Shown("lr", "rate"),
        "staleness": Shown("lag", "name"),
        "method": Shown("method", "name"),
        "largest_share": Shown("largest share", digits=3),
        "gini": Shown("Gini"),
        "noise_to_signal": Shown("noise to signal"),
    },
)


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """Statements, curves, and the table of contributions where score norms were recorded."""
    found = study.findings("gradients")
    recorded = _LAYOUT.table in found.tables
    return [
        *statements(study, ledger, "gradients", NORMS, CONTRIBUTIONS, NOTE),
        *pictures(study, "grad-norm-steps"),
        *(analysis_table(study, ledger, "gradients", _LAYOUT) if recorded else []),
    ]


SECTIONS = (ReportSection("gradients", "Gradients", 140, blocks),)
