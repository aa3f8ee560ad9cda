"""Example episodes: which runs are shown, at which evaluations, and that text of a model stays text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from vcpo_bench.analysis.results import load
from vcpo_bench.reports.document import Document, Section
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.sections.cell_pages import anchor
from vcpo_bench.reports.sections.episodes import EPISODES_SHOWN, EVALUATIONS_SHOWN, RUNS_PER_OUTCOME, blocks
from vcpo_bench.reports.study import Study
from vcpo_bench.reports.writers.html import render_document


@pytest.fixture(scope="module")
def told(make_results: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = make_results(tmp_path_factory.mktemp("told"), methods=("vcpo", "tis"), lags=(1, 16), record="diagnostics")
    return Study(load(folder))


def test_failed_runs_come_first_and_end_wrong(told: Study) -> None:
    (table,) = blocks(told, Ledger())
    outcomes = [row[4].text for row in table.rows]
    runs = list(dict.fromkeys(row[1].link for row in table.rows))
    assert len(runs) == 2 * RUNS_PER_OUTCOME
    assert outcomes[0] == "collapse"
    assert outcomes[-1] == "healthy"
    first = [row for row in table.rows if row[1].link == runs[0]]
    assert [int(row[5].text) for row in first] == sorted(int(row[5].text) for row in first)
    assert "right [1]" in first[0][7].text
    assert "wrong [0]" in first[-1][7].text


def test_four_prompts_from_the_first_evaluation_to_the_last(told: Study) -> None:
    """The synthetic folder holds two prompts per evaluation; three more are added."""
    results = load(told.results.folders[0])
    more = [results.episodes.assign(prompt=results.episodes["prompt"] + 2 * i) for i in range(3)]
    results.__dict__["episodes"] = pd.concat(more, ignore_index=True)
    study = Study(results)
    (table,) = blocks(study, Ledger())
    for key, evals in study.evals.items():
        mine = [row for row in table.rows if row[1].link == anchor(key)]
        if mine:
            updates = [int(row[5].text) for row in mine]
            assert updates == sorted(set(updates))
            assert {updates[0], updates[-1]} == {evals["step"].min(), evals["step"].max()}
            assert evals["step"][evals["sampled_reward"].argmax()] in updates
            assert EVALUATIONS_SHOWN <= len(mine) <= EVALUATIONS_SHOWN + 1
    assert all(row[7].text.count("] ") == EPISODES_SHOWN - 1 for row in table.rows), "each with its reward"
    assert all(f"({EPISODES_SHOWN}) " in row[7].text for row in table.rows)


def test_where_no_run_failed_the_survivors_are_shown(
    make_results: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = make_results(tmp_path_factory.mktemp("kept"), methods=("vcpo",), lags=(1,), record="diagnostics")
    study = Study(load(folder))
    kept = study.cells[~study.cells["collapsed"].astype(bool)]
    study.cells = kept
    (table,) = blocks(study, Ledger())
    assert {row[4].text for row in table.rows} == {"healthy"}


def test_what_a_model_writes_is_escaped(told: Study) -> None:
    ledger = Ledger()
    page = render_document(Document("told", [Section("episodes", "Episodes", blocks(told, ledger))], ledger), [])
    assert "prompt 0 &lt;b&gt; at 0" in page
    assert "prompt 0 <b>" not in page


def test_nothing_is_shown_where_nothing_was_recorded(study: Study) -> None:
    assert blocks(study, Ledger()) == []
