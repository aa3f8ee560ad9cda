"""The tables of the comparison and the scoreboard as the report shows them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from vcpo_bench.analysis.results import load
from vcpo_bench.files.checksums import write_sealed
from vcpo_bench.reports.document import Table
from vcpo_bench.reports.formatting import MISSING, fixed
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.sections.comparison_tables import ALL_TASKS, comparison_tables
from vcpo_bench.reports.sections.scoreboard import blocks
from vcpo_bench.reports.study import Study


def test_no_method_is_compared_with_itself_in_the_table_of_costs(
    make_results: Callable[..., Path], tmp_path: Path
) -> None:
    make_results(tmp_path / "r", methods=("vcpo", "tis", "clip"), lags=(16,), seeds=range(6), steps=40, controls=False)
    (table,) = comparison_tables(Study(load(tmp_path / "r")), Ledger(), "cost")
    method, base = table.headings.index("method"), table.headings.index("compared with")
    assert {row[method].text: row[base].text for row in table.rows} == {
        "vcpo": "tis",
        "tis": "baseline",
        "clip": MISSING,
    }


def test_the_ranking_has_the_rows_of_each_task_below_the_pooled_ones(
    make_results: Callable[..., Path], tmp_path: Path
) -> None:
    methods = ("vcpo", "clip")
    one = Study(load(make_results(tmp_path / "one", methods=methods, lags=(1, 16), seeds=range(6), steps=40)))
    (single,) = comparison_tables(one, Ledger(), "ranking")
    assert "task" not in single.headings
    make_results(tmp_path / "two", methods=methods, lags=(1, 16), seeds=range(6), steps=40, tasks=("chain", "walk"))
    study = Study(load(tmp_path / "two"))
    (table,) = comparison_tables(study, Ledger(), "ranking")
    assert {len(row) for row in table.rows} == {len(table.headings)}
    places = [(row[0].text, row[1].text) for row in table.rows]
    assert list(dict.fromkeys(places)) == [(lag, task) for lag in ("1", "16") for task in (ALL_TASKS, "chain", "walk")]
    at = {heading: place for place, heading in enumerate(table.headings)}
    rows = {tuple(entry.text for entry in row[:3]): row for row in table.rows}
    found = study.findings("compare").tables["by_task"].set_index(["staleness", "task", "method"])
    row, mean = rows["16", "walk", "vcpo"], found.loc[(16, "walk", "vcpo")]
    assert row[at["mean [95%]"]].text == f"{fixed(mean['mean'])} [{fixed(mean['low'])}, {fixed(mean['high'])}]"
    assert (row[at["runs"]].text, rows["16", ALL_TASKS, "vcpo"][at["runs"]].text) == ("6", "12")
    assert row[at["interquartile mean [95%]"]].text == MISSING
    assert "By task: mean over its runs" in table.caption


def test_the_ranking_says_where_bootstrap_intervals_are_too_narrow(
    make_results: Callable[..., Path], tmp_path: Path
) -> None:
    for tasks, said in ((("chain", "walk"), True), (("chain",), False)):
        root = make_results(
            tmp_path / str(len(tasks)), ("vcpo", "clip"), (16,), range(7 - len(tasks)), 40, controls=False, tasks=tasks
        )
        (table,) = comparison_tables(Study(load(root)), Ledger(), "ranking")
        assert ("with fewer than 6 seeds per task they are too narrow" in table.caption) is said


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
