"""Every statement of a report traces to exactly the rows it rests on, in a synthetic study and in a real one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from command_line import call_here
from statement_checks import foreign_names, lags_said, unexplained

from vcpo_bench.reports.document import Prose
from vcpo_bench.reports.numbers import Number
from vcpo_bench.reports.report import build
from vcpo_bench.reports.study import Study, open_study
from vcpo_bench.reports.trace import rows_behind, trace


def shape(method: str, lag: int, seed: int) -> str:
    if method == "tis" and lag > 4:
        return "collapsed"
    return ("healthy", "nan", "error", "dip")[seed % 4] if method == "clip" and lag > 4 else "healthy"


@pytest.fixture(scope="module")
def synthetic(make_results: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Enough failures for a prediction, with a damaged file and an unfinished cell."""
    folder = tmp_path_factory.mktemp("statements") / "synthetic"
    methods = ("vcpo", "vcpo(ess=off)", "tis", "clip")
    make_results(folder, methods=methods, lags=(1, 16), seeds=range(8), steps=120, shapes=shape, lrs=(1e-4, 3e-4))
    make_results(folder, methods=("vespo",), lags=(1,), seeds=(0,), steps=60, partial=("vespo",), controls=False)
    victim = next(path for path in (folder / "cells").iterdir() if "-clip-fifo1-" in path.name)
    (victim / "evals.parquet").write_bytes(b"damaged")
    return folder


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six cells of the tiny policy, really trained."""
    folder = tmp_path_factory.mktemp("statements") / "real"
    grid = ["--methods", "vcpo", "--staleness", "2", "--seeds", "2", "--steps", "12", "--record", "full"]
    size = ["--prompts", "4", "--responses", "4", "--jobs", "1", "--quiet", "--out", str(folder)]
    assert call_here("run", *grid, *size).exit_code == 0
    return folder


@pytest.fixture(scope="module", params=["synthetic", "real"])
def reported(request: pytest.FixtureRequest) -> tuple[Path, Study, list[Number]]:
    """A folder, its study, and every statement of its report."""
    folder: Path = request.getfixturevalue(request.param)
    study = open_study(folder, partial=request.param == "synthetic")
    prose = [one for section in build(study).sections for one in section.blocks if isinstance(one, Prose)]
    parts = [part for block in prose for sentence in block.sentences for part in sentence.parts]
    statements = [part for part in parts if isinstance(part, Number)]
    assert len(statements) == len(parts), "no sentence of a report is text without an id"
    return folder, study, statements


def test_every_statement_has_rows_that_hold_what_it_says(reported: tuple[Path, Study, list[Number]]) -> None:
    _, study, statements = reported
    assert len(statements) > 20
    cells = study.cells
    for one in statements:
        rows = rows_behind(study, one)
        table = study.table(one.table)
        assert one.rows
        assert len(rows) == len(one.rows) == len(set(one.rows))
        pd.testing.assert_frame_equal(rows, table.loc[list(one.rows), list(rows.columns)])
        assert set(one.columns) <= set(rows) <= {"key", *one.columns}
        assert unexplained(one.text, rows, one.table.split(".")[1]) == [], one.text
        assert foreign_names(one.text, rows, cells["method"]) == [], one.text


def test_a_statement_about_a_lag_shows_rows_and_cells_of_that_lag_only(
    reported: tuple[Path, Study, list[Number]],
) -> None:
    _, study, statements = reported
    lag_of = study.cells.set_index("key")["staleness"].astype(str)
    about = [(one, lags_said(one.text)) for one in statements]
    assert sum(bool(said) for _, said in about) >= 5
    for one, said in about:
        if said:
            assert set(rows_behind(study, one)["staleness"].astype(str)) == said, one.text
            assert set(lag_of[list(one.keys)]) == said, one.text


@pytest.mark.parametrize("reported", ["real"], indirect=True)
def test_trace_finds_statements_by_id(reported: tuple[Path, Study, list[Number]]) -> None:
    folder, _, statements = reported
    for one in statements[::10]:
        found = trace(folder, one.id)
        assert found.number == one
        assert len(found.rows) == len(one.rows or ())
        assert set(found.cells["key"]) == set(one.keys)


@pytest.mark.parametrize("reported", ["synthetic"], indirect=True)
def test_damage_and_unfinished_cells_are_statements_too(reported: tuple[Path, Study, list[Number]]) -> None:
    _, study, statements = reported
    said = {one.text: one for one in statements}
    (damage,) = [one for text, one in said.items() if text.startswith("Damaged file: synthetic/cells/")]
    assert len(damage.keys) == 1
    assert "-clip-fifo1-" in damage.keys[0]
    assert rows_behind(study, damage)["file"].item().endswith("evals.parquet")
    (unfinished,) = [one for text, one in said.items() if text.startswith("Preliminary: 1 of ")]
    assert rows_behind(study, unfinished)["partial"].sum() == 1
