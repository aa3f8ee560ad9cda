"""How many cells there are."""

from __future__ import annotations

from vcpo_bench.reports.document import Block, Table, TableCell
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.place import Place
from vcpo_bench.reports.study import Study

PLACE = Place("Number of cells", 155)


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """One table."""
    return [Table("counts", "Cells.", ["cells"], [[TableCell(str(len(study.cells)))]], frozenset())]
