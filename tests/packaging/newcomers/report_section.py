"""How many cells there are."""

from __future__ import annotations

from vcpo_bench.reports.document import Block, Table, TableCell
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.report_section import ReportSection
from vcpo_bench.reports.study import Study


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """One table."""
    return [Table("counts", "Cells.", ["cells"], [[TableCell(str(len(study.cells)))]], frozenset())]


SECTIONS = (ReportSection("number-of-cells", "Number of cells", 155, blocks),)
