"""The scoreboard of a report: what did not complete has a column of its own, and only then."""

import json
from collections.abc import Callable
from pathlib import Path

from vcpo_bench.analysis.results import load
from vcpo_bench.files.checksums import write_sealed
from vcpo_bench.reports.document import Table
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.sections.scoreboard import blocks
from vcpo_bench.reports.study import Study


def board(folder: Path) -> Table:
    table, *_ = blocks(Study(load(folder)), Ledger())
    assert isinstance(table, Table)
    assert {len(row) for row in table.rows} == {len(table.headings)}
    assert max(table.numeric) < len(table.headings)
    return table


def test_what_did_not_complete_is_a_column_only_where_there_is_such_a_cell(
    tmp_path: Path, make_results: Callable[..., Path]
) -> None:
    folder = make_results(tmp_path / "results", methods=("vcpo",), lags=(4,), controls=False)
    assert board(folder).headings[-1] == "collapsed"
    cell = min((folder / "cells").iterdir()) / "cell.json"
    write_sealed(cell, json.loads(cell.read_text()) | {"status": "error", "error": "the disk broke"})
    after = board(folder)
    assert after.headings[-1] == "not completed"
    assert [row[-1].text for row in after.rows] == ["1 error"]
