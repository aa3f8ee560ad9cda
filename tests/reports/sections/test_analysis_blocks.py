"""Statements and tables of analysis as they stand in a report."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from vcpo_bench.analysis.caveats import DAMAGE
from vcpo_bench.analysis.findings import Findings, agreeing
from vcpo_bench.analysis.results import Results, load
from vcpo_bench.reports.document import Prose, Table
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.report import build
from vcpo_bench.reports.sections import gradients
from vcpo_bench.reports.sections.analysis_blocks import Layout, Shown, analysis_table, statements
from vcpo_bench.reports.sections.comparison_tables import comparison_tables
from vcpo_bench.reports.study import Study
from vcpo_bench.reports.trace import rows_behind

COLUMNS = {
    "staleness": Shown("lag", "name"),
    "method": Shown("method", "name"),
    "lr": Shown("lr", "rate"),
    "runs": Shown("runs", "count"),
    "iqm": Shown("mean", interval="own"),
}
LAYOUT = Layout("t", "caption", COLUMNS)


def frame(low: float, high: float) -> pd.DataFrame:
    row = {"staleness": 16, "method": "vcpo", "lr": 3e-4, "runs": 3, "iqm": 0.5, "iqm_low": low, "iqm_high": high}
    return pd.DataFrame([row])


def with_table(study: Study, table: pd.DataFrame, *on: str) -> Study:
    """A study whose analysis `compare` found the table `t`, resting on the cells that agree in some columns."""
    other = Study(Results(study.results.folders, study.results.cells))
    other._findings["compare"] = Findings({"t": table}, {"t": agreeing(study.cells, *on)})
    return other


def test_a_row_is_shown_with_its_interval_and_its_cells(study: Study) -> None:
    other = with_table(study, frame(0.25, 0.75), "staleness", "method", "lr")
    (table,) = analysis_table(other, Ledger(), "compare", LAYOUT)
    assert [entry.text for entry in table.rows[0]] == ["16", "vcpo", "3e-4", "3", "0.50 [0.25, 0.75]"]
    number = table.rows[0][4].number
    assert number is not None
    mine = study.cells[(study.cells["method"] == "vcpo") & (study.cells["staleness"] == 16)]
    assert set(number.keys) == set(mine["key"])
    assert rows_behind(other, number).to_dict("records") == frame(0.25, 0.75).drop(columns="runs").to_dict("records")
    assert table.numeric == frozenset({2, 3, 4})


@pytest.mark.parametrize(("low", "high"), [(0.5, 0.5), (float("nan"), float("nan"))])
def test_no_interval_is_no_interval(study: Study, low: float, high: float) -> None:
    (table,) = analysis_table(with_table(study, frame(low, high)), Ledger(), "compare", LAYOUT)
    assert table.rows[0][4].text == "0.50"


def test_small_p_values_are_not_zero(study: Study) -> None:
    frame = pd.DataFrame({"method": ["vcpo", "clip", "vespo"], "p": [1e-9, 0.0012, float("nan")]})
    layout = Layout("t", "c", {"method": Shown("method", "name"), "p": Shown("p", "p")})
    (shown,) = analysis_table(with_table(study, frame), Ledger(), "compare", layout)
    assert [row[1].text for row in shown.rows] == ["<0.001", "0.001", "\u2013"]


def test_tables_about_learning_rates_need_several(study: Study) -> None:
    assert study.cells["lr"].nunique() == 1
    assert comparison_tables(study, Ledger(), "choices", "frontier") == []


def test_an_empty_table_is_left_out(study: Study) -> None:
    assert analysis_table(with_table(study, frame(0, 1).iloc[:0]), Ledger(), "compare", LAYOUT) == []
    assert [table.name for table in comparison_tables(study, Ledger(), "ranking", "step_controls")] == ["ranking"]


def test_tables_keep_the_order_of_analysis_or_are_sorted_by_lag(study: Study) -> None:
    ranking, targets = comparison_tables(study, Ledger(), "ranking", "targets")
    order = study.findings("compare").tables["ranking"]["method"].tolist()
    assert [row[1].text for row in ranking.rows] == order
    lags = [float(row[0].text) for row in targets.rows]
    assert lags == sorted(lags)


def test_statements_are_chosen_by_topic_and_damage_is_marked(study: Study) -> None:
    other = with_table(study, frame(0, 1))
    found = other.findings("compare")
    for topic in ("ranking", "pairs", DAMAGE):
        found.statements.append(found.finding(topic, f"About {topic}.", "t", found.tables["t"], ("iqm",)))
    (prose,) = statements(other, Ledger(), "compare", "pairs", DAMAGE)
    assert [(one.text, one.tone) for one in prose.sentences] == [("About pairs.", ""), (f"About {DAMAGE}.", "bad")]
    assert statements(other, Ledger(), "compare", "time") == []


def test_every_statement_of_its_analyses_is_in_the_report_once(study: Study) -> None:
    prose = [block for section in build(study).sections for block in section.blocks if isinstance(block, Prose)]
    said = [one.text for block in prose for one in block.sentences]
    for analysis in ("compare", "collapse", "weights", "gradients", "auroc", "coverage", "caveats"):
        for statement in study.findings(analysis).statements:
            assert said.count(statement.text) == 1, statement.text


def test_a_folder_of_two_regimes_has_a_row_of_each(make_results: Callable[..., Path], tmp_path: Path) -> None:
    sizes = {"methods": ("tis",), "lags": (4,), "seeds": (0, 1), "steps": 20, "record": "full", "controls": False}
    folder = make_results(tmp_path, sample_every=10, **sizes)
    file = sorted(folder.glob("cells/*/cell.json"))[-1]
    file.write_text(file.read_text().replace('"fifo"', '"random"'))
    found = gradients.blocks(Study(load(folder)), Ledger())
    (table,) = (one for one in found if isinstance(one, Table))
    assert sorted(row[1].text for row in table.rows) == ["fifo", "random"]


def test_runs_and_controls_of_one_method_and_lag_have_numbers_of_their_own(
    make_results: Callable[..., Path], tmp_path: Path
) -> None:
    """A grid without controls, then one whose control is the same method: one seed of each kind."""
    sizes = {"methods": ("reinforce",), "lags": (4,), "steps": 20, "record": "full", "controls": False}
    folder = make_results(tmp_path, sample_every=10, seeds=(0, 1), **sizes)
    grid = json.loads((folder / "grid.json").read_text())
    grid["cells"][max(grid["cells"])]["control"] = True
    (folder / "grid.json").write_text(json.dumps(grid))
    (table,) = (one for one in gradients.blocks(Study(load(folder)), Ledger()) if isinstance(one, Table))
    assert len(table.rows) == 2
