"""The tables of the comparison as the report shows them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from vcpo_bench.analysis.results import load
from vcpo_bench.reports.formatting import MISSING
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.sections.comparison_tables import comparison_tables
from vcpo_bench.reports.study import Study


def test_no_method_is_compared_with_itself_in_the_table_of_costs(
    make_results: Callable[..., Path], tmp_path: Path
) -> None:
    make_results(tmp_path / "r", methods=("vcpo", "tis", "clip"), lags=(16,), seeds=(0, 1), steps=40, controls=False)
    (table,) = comparison_tables(Study(load(tmp_path / "r")), Ledger(), "cost")
    method, base = table.headings.index("method"), table.headings.index("compared with")
    assert {row[method].text: row[base].text for row in table.rows} == {
        "vcpo": "tis",
        "tis": "baseline",
        "clip": MISSING,
    }
