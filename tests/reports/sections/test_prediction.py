"""The section on prediction: drawn from the analysis, absent where it has too little to say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from vcpo_bench.analysis.results import load
from vcpo_bench.reports.document import Picture, Table
from vcpo_bench.reports.figure import Sheet
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.plots.method_style import drawing
from vcpo_bench.reports.plots.prediction import lead_time
from vcpo_bench.reports.sections.prediction import blocks
from vcpo_bench.reports.study import Study


@pytest.fixture(scope="module")
def many(make_results: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Study:
    """16 failed runs and 16 healthy ones of the same task and lag, of 8 configurations each."""
    folder = tmp_path_factory.mktemp("many")
    rates = [1e-4 * number for number in range(1, 9)]
    make_results(folder, methods=("vcpo", "tis"), lags=(16,), seeds=range(2), steps=200, lrs=rates, controls=False)
    return Study(load(folder))


def test_the_figure_shows_the_table_of_the_analysis(many: Study) -> None:
    with drawing():
        plot = lead_time(many, Sheet(legend=True))
    assert plot is not None
    assert plot.methods[0] == "ess"
    line = next(one for one in plot.lines if one.name == "ess")
    table = many.findings("auroc").tables["auroc"].query("signal == 'ess' and lead > 0").dropna(subset=["value"])
    np.testing.assert_array_equal(line.y, table.sort_values("lead")["value"])
    assert line.low is not None
    assert (line.low <= line.y).all()
    assert line.y[0] > 0.9  # the synthetic ESS falls before these collapses


def test_signals_that_were_not_recorded_have_no_line(many: Study) -> None:
    with drawing():
        plot = lead_time(many, Sheet())
    assert plot is not None
    assert "head_norm" not in plot.methods  # needs --record diagnostics


def test_the_section_has_sentences_the_figure_and_the_table(many: Study) -> None:
    text, picture, table = blocks(many, Ledger())
    assert isinstance(picture, Picture)
    assert isinstance(table, Table)
    assert {row[0].text for row in table.rows} == set(many.findings("auroc").tables["auroc"]["signal"])
    assert "Primary endpoint" in str(text)


def test_too_few_failed_runs_say_nothing(study: Study) -> None:
    assert blocks(study, Ledger()) == []
    assert lead_time(study, Sheet()) is None
