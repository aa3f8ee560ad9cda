"""Every number of a report leads back to rows, and the simple ones can be computed again from them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from vcpo_bench.analysis.commands import run
from vcpo_bench.errors import UsageError
from vcpo_bench.reports import trace as trace_module
from vcpo_bench.reports.document import Document
from vcpo_bench.reports.numbers import Ledger, statement_id
from vcpo_bench.reports.study import Study
from vcpo_bench.reports.trace import rows_behind, trace


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, study: Study, document: Document) -> None:
    """Reports are not opened and built again for every trace."""
    monkeypatch.setattr(trace_module, "open_study", lambda folder: study)
    monkeypatch.setattr(trace_module, "build", lambda study: document)


def test_every_id_of_the_page_resolves_to_rows(study: Study, ledger: Ledger, page: str) -> None:
    shown = set(re.findall(r'data-id="([^"]*)"', page))
    assert len(shown) > 100
    assert shown == set(ledger.numbers)
    for number in ledger.numbers.values():
        rows = rows_behind(study, number)
        assert number.keys, number
        assert set(number.columns) <= set(rows), number
        assert set(rows.get("key", [])) <= set(number.keys), number
        if number.text not in ("-", "\u2013"):
            assert len(rows), number


def test_a_number_of_a_table_of_analysis_is_in_the_one_row_it_names(study: Study, ledger: Ledger) -> None:
    checked = 0
    for number in ledger.numbers.values():
        if number.what != "statement" and "." in number.table:
            rows = rows_behind(study, number)
            assert len(rows) == 1, number
            column = number.what.split(".")[1]
            value = rows[column].item()
            assert np.isnan(number.value) if pd.isna(value) else float(value) == number.value or np.isnan(number.value)
            checked += 1
    assert checked > 50


def test_every_number_of_the_scoreboard_follows_from_its_rows(study: Study, ledger: Ledger) -> None:
    onset = study.cells.set_index("key")["onset"]
    recomputed = {
        "final_reward": lambda rows: rows["sampled_reward"].mean(),
        "best_reward": lambda rows: rows["sampled_reward"].mean(),
        "median_ess": lambda rows: (
            rows[~(rows["step"] >= rows["key"].map(onset))].groupby("key")["ess_ratio"].median().median()
        ),
    }
    checked = 0
    for number in ledger.numbers.values():
        if number.what in recomputed and np.isfinite(number.value):
            rows = rows_behind(study, number)
            assert recomputed[number.what](rows) == pytest.approx(number.value, rel=1e-12)
            per_cell = {"final_reward": 3, "best_reward": 1}.get(number.what)
            assert per_cell is None or sorted(rows["key"]) == sorted([*number.keys] * per_cell)
            checked += 1
    assert checked == 3 * len(study.board)


def test_trace_prints_what_how_and_rows(folder: Path, ledger: Ledger) -> None:
    number = next(one for one in ledger.numbers.values() if one.what == "final_reward")
    found = trace(folder, number.id)
    assert found.number == number
    assert found.text.startswith(
        f"{number.id}: {number.text}\n  final_reward of chain, fifo, lr 3e-4, lag 0, reinforce"
    )
    assert len(found.rows) == 3 * len(number.keys)
    assert set(found.rows["step"]) == {100, 110, 120}, "the last three evaluations of each cell"
    assert f"{len(found.rows)} rows of the table `evals`" in found.text
    assert found.rows["key"].iloc[0] in found.text


@pytest.mark.usefixtures("opened")
def test_trace_of_a_statement_prints_its_rows_and_the_cells_behind_them(folder: Path, ledger: Ledger) -> None:
    numbers = ledger.numbers.values()
    statement = next(one for one in numbers if one.text.startswith("Lag 16: the median ESS ratio"))
    found = trace(folder, statement.id)
    assert set(found.rows["staleness"]) == {16}
    assert set(found.cells["staleness"]) == {16}
    assert found.text.startswith(f"{statement.id}: Lag 16: the median ESS ratio is ")
    assert "3 rows of the table `ess` of `vcpo-bench lab analyze weights`" in found.text
    assert f"computed from {len(found.cells)} cells" in found.text
    assert all(key in found.text for key in statement.keys)


@pytest.mark.usefixtures("opened")
def test_nothing_is_printed_of_an_empty_table(folder: Path, ledger: Ledger) -> None:
    numbers = ledger.numbers.values()
    found = trace(folder, next(one.id for one in numbers if one.text.startswith("Lag 16: the median ESS ratio")))
    empty = replace(found, rows=found.rows.iloc[:0], cells=found.cells.iloc[:0])
    assert "Empty DataFrame" not in empty.text
    assert empty.text.endswith("\n  computed from no cells")


@pytest.mark.usefixtures("opened")
def test_a_statement_of_an_analysis_is_found_though_the_report_leaves_it_out(folder: Path, ledger: Ledger) -> None:
    shown = {one.text for one in ledger.numbers.values()}
    left_out = next(one for one in run("prediction", folder).statements if one.text not in shown)
    found = trace(folder, statement_id("prediction", left_out.text))
    assert found.number.text == left_out.text
    assert list(found.rows.index) == list(left_out.rows)
    assert "of `vcpo-bench lab analyze prediction`" in found.text


@pytest.mark.usefixtures("opened")
def test_an_unknown_id_gets_close_ones(folder: Path, ledger: Ledger) -> None:
    known = next(iter(ledger.numbers))
    with pytest.raises(UsageError, match=f"no number or statement .*; close are .*{known[:-1]}"):
        trace(folder, known[:-1] + ("0" if known[-1] != "0" else "1"))


def test_ids_do_not_depend_on_values_and_never_collide() -> None:
    first, second = Ledger(), Ledger()
    place = {"table": "steps", "columns": ()}
    assert first.add("x", ("a",), 1.0, "how", ["k"], **place).id == second.add("x", ("a",), 2.0, "", ["k"], **place).id
    assert first.add("x", ("b",), 1.0, "how", ["k"], **place).id != next(iter(second.numbers))
    first.add("n", ("a",), float("nan"), "how", ["k"], **place)
    first.add("n", ("a",), float("nan"), "how", ["k"], **place)
    for value, rows in ((3.0, None), (1.0, [0])):
        with pytest.raises(ValueError, match="two numbers of one report"):
            first.add("x", ("a",), value, "how", ["k"], rows=rows, **place)
