"""Could it have been predicted? Every signal some updates before the onset of failure."""

from __future__ import annotations

from vcpo_bench.analysis.prediction.panel import PRIMARY_LEAD
from vcpo_bench.analysis.prediction.sentences import AUROC
from vcpo_bench.reports.document import Block
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.plots.catalog import pictures
from vcpo_bench.reports.report_section import ReportSection
from vcpo_bench.reports.sections.analysis_blocks import Layout, Shown, analysis_table, statements
from vcpo_bench.reports.study import Study

_LAYOUT = Layout(
    "auroc",
    f"Every recorded signal {PRIMARY_LEAD} updates before the onset of collapse, against runs of the same task, regime "
    "and lag that have not collapsed by then. 95% intervals: configurations are resampled. "
    "`vcpo-bench lab analyze prediction` also has alarms, their cost, and what is left among seeds of one "
    "configuration.",
    {
        "signal": Shown("signal", "name"),
        "n_collapsed": Shown("collapsed runs", "count"),
        "n_healthy": Shown("healthy runs", "count"),
        "value": Shown("AUROC [95%]", interval="plain"),
        "p_holm": Shown("p, Holm", "p"),
        "verdict": Shown("verdict", "name"),
    },
)


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """Statements, the figure over lead time and the table at the primary lead; nothing where too few runs failed."""
    table = study.findings("auroc").tables["auroc"]
    if table.empty:
        return []
    here = table[table["lead"] == PRIMARY_LEAD].sort_values("value", ascending=False, kind="stable")
    return [
        *statements(study, ledger, "auroc", AUROC),
        *pictures(study, "auroc-lead"),
        *analysis_table(study, ledger, "auroc", _LAYOUT, here),
    ]


SECTIONS = (ReportSection("prediction", "Could it have been predicted?", 80, blocks, folded=False),)
