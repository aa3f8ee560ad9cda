"""Tables and sentences of analysis as they stand in a report."""

from __future__ import annotations

import pandas as pd
import pytest

from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.sections.analysis_blocks import Shown, judged_table, statements
from vcpo_bench.reports.sections.comparison import compared
from vcpo_bench.reports.sections.verdict import TOPICS, said_about, verdict
from vcpo_bench.reports.study import Study

COLUMNS = {
    "staleness": Shown("lag", "name"),
    "method": Shown("method", "name"),
    "lr": Shown("lr", "rate"),
    "runs": Shown("runs", "count"),
    "iqm": Shown("mean", interval="own"),
}


def frame(low: float, high: float) -> pd.DataFrame:
    row = {"staleness": 16, "method": "vcpo", "lr": 3e-4, "runs": 3, "iqm": 0.5, "iqm_low": low, "iqm_high": high}
    return pd.DataFrame([row])


def test_a_row_is_shown_with_its_interval_and_its_cells(study: Study) -> None:
    table = judged_table(study, Ledger(), "t", frame(0.25, 0.75), "caption", COLUMNS)
    assert table is not None
    assert [entry.text for entry in table.rows[0]] == ["16", "vcpo", "3e-4", "3", "0.50 [0.25, 0.75]"]
    number = table.rows[0][4].number
    assert number is not None
    mine = study.cells[(study.cells["method"] == "vcpo") & (study.cells["staleness"] == 16)]
    assert set(number.keys) == set(mine["key"])
    assert table.numeric == frozenset({2, 3, 4})


@pytest.mark.parametrize(("low", "high"), [(0.5, 0.5), (float("nan"), float("nan"))])
def test_no_interval_is_no_interval(study: Study, low: float, high: float) -> None:
    table = judged_table(study, Ledger(), "t", frame(low, high), "caption", COLUMNS)
    assert table is not None
    assert table.rows[0][4].text == "0.50"


def test_small_p_values_are_not_zero(study: Study) -> None:
    table = pd.DataFrame({"method": ["vcpo", "clip", "vespo"], "p": [1e-9, 0.0012, float("nan")]})
    shown = judged_table(study, Ledger(), "t", table, "c", {"method": Shown("method", "name"), "p": Shown("p", "p")})
    assert shown is not None
    assert [row[1].text for row in shown.rows] == ["<0.001", "0.001", "\u2013"]


def test_tables_about_rates_need_rates(study: Study) -> None:
    assert study.cells["lr"].nunique() == 1
    assert compared(study, Ledger(), "choices", "frontier") == []


def test_an_empty_table_is_left_out(study: Study) -> None:
    assert judged_table(study, Ledger(), "t", frame(0, 1).iloc[:0], "caption", COLUMNS) is None
    assert [table.name for table in compared(study, Ledger(), "ranking", "step_controls")] == ["ranking"]


def test_tables_keep_the_order_of_analysis_or_are_sorted_by_lag(study: Study) -> None:
    ranking, targets = compared(study, Ledger(), "ranking", "targets")
    order = study.comparison.tables["ranking"]["method"].tolist()
    assert [row[1].text for row in ranking.rows] == order
    lags = [float(row[0].text) for row in targets.rows]
    assert lags == sorted(lags)


def test_a_sentence_about_a_lag_rests_on_the_cells_of_that_lag(study: Study) -> None:
    prose = statements(study, Ledger(), "compare", ["Lag 16: x wins.", "All is well."])
    first, second = (one.parts[0] for one in prose.sentences)
    assert not isinstance(first, str)
    assert not isinstance(second, str)
    assert set(first.keys) == set(study.cells.loc[study.cells["staleness"] == 16, "key"])
    assert len(second.keys) == len(study.cells)


def test_every_sentence_is_said_once(study: Study) -> None:
    ledger = Ledger()
    blocks = [*verdict(study, ledger), *(block for topic in TOPICS for block in said_about(study, ledger, topic))]
    said = [one.text for block in blocks for one in block.sentences]
    for text in (*study.comparison.text, *study.losses.text):
        assert said.count(text) == 1, text
