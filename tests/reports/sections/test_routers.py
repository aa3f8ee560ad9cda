"""The section on routers: one row per setting, traceable, absent where nothing is routed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from vcpo_bench.analysis.results import load
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.sections.routers import blocks
from vcpo_bench.reports.study import Study


def test_without_routers_there_is_no_table(study: Study) -> None:
    assert blocks(study, Ledger()) == []


def test_one_row_per_setting_with_the_means_of_its_updates(
    make_results: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = make_results(tmp_path_factory.mktemp("routers"), methods=("vcpo", "tis"), lags=(1,), controls=False)
    study = Study(load(folder))
    steps = study.results.steps
    longest = int(steps["step"].max()) + 1
    for place, name in enumerate(("", "_engine", "_lag")):
        steps[f"routers_changed{name}"] = (steps["step"] + place) / longest / 2
    steps["tokens_rerouted"] = 0.25
    ledger = Ledger()
    (table,) = blocks(study, ledger)
    assert [[entry.text for entry in row[3:6]] for row in table.rows] == [["off", "1", "tis"], ["off", "1", "vcpo"]]
    middle = (longest - 1) / longest / 4
    for row in table.rows:
        values = [entry.number.value for entry in row[6:] if entry.number is not None]
        assert values[:4] == pytest.approx([middle, middle + 0.5 / longest, middle + 1 / longest, 0.25])
        assert len(values) == 5
    known = next(one for one in ledger.numbers.values() if one.columns == ("routers_changed",))
    assert known.table == "steps"
    assert known.rows is not None
    assert len(set(steps.loc[list(known.rows), "key"])) * longest == len(known.rows)
