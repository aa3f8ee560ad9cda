"""The section is part of the report."""

from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.sections.newcomer import blocks
from vcpo_bench.reports.study import Study


def test_it_counts_the_cells(study: Study) -> None:
    (table,) = blocks(study, Ledger())
    assert table.rows[0][0].text == str(len(study.cells))
