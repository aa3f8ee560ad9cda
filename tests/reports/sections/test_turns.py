"""The section on turns and calls: first and last updates of every setting, traceable, absent without environments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from vcpo_bench.analysis.results import load
from vcpo_bench.records.step_facts import EPISODE_FACTS
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.sections.turns import blocks
from vcpo_bench.reports.study import Study


def test_without_an_environment_there_is_no_table(study: Study) -> None:
    assert blocks(study, Ledger()) == []


def test_the_first_and_the_last_eighth_of_the_updates(
    make_results: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = make_results(tmp_path_factory.mktemp("turns"), methods=("vcpo", "tis"), lags=(1,), controls=False)
    study = Study(load(folder))
    steps = study.results.steps
    longest = int(steps["step"].max()) + 1
    for place, fact in enumerate(EPISODE_FACTS):
        steps[f"episode_{fact}"] = steps["step"] / longest + place
    ledger = Ledger()
    (table,) = blocks(study, ledger)
    assert [[entry.text for entry in row[4:6]] for row in table.rows] == [
        [method, when] for method in ("tis", "vcpo") for when in ("first", "last")
    ]
    eighth = longest // 8
    first = sum(range(eighth)) / eighth / longest
    for entry, place in zip(table.rows[0][6:], range(len(EPISODE_FACTS)), strict=True):
        assert entry.number is not None
        assert entry.number.value == pytest.approx(place + first)
        assert entry.number.rows is not None
        assert set(steps.loc[list(entry.number.rows), "step"]) == set(range(eighth))
        assert entry.number.table == "steps"
    assert {one.columns[0] for one in ledger.numbers.values()} == {f"episode_{fact}" for fact in EPISODE_FACTS}
