"""One cell with a wrong value is set aside and named; it does not silence the others."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vcpo_bench import records
from vcpo_bench.analysis.commands import run
from vcpo_bench.analysis.comparison.scoreboard import scoreboard
from vcpo_bench.analysis.results import load

Make = Callable[..., Path]

CONFIG: list[tuple[str, Any]] = [
    ("lr", "3e-4"), ("lr", float("nan")), ("lr", -1.0), ("lr", True), ("lr", [3e-4]), ("lr", None),
    ("staleness", 1.5), ("staleness", "1"), ("staleness", -1), ("seed", None), ("seed", 10**40), ("steps", "100"),
    ("method", 7), ("method", None), ("task", ["chain"]), ("regime", {}), ("prompts", "16"), ("responses", None),
    ("weight_decay", "0"), ("model", 3),
]  # fmt: skip
FACTS: list[tuple[str, Any]] = [
    ("steps_done", "many"), ("seconds", "long"), ("seconds", float("inf")), ("reason", 5), ("error", {"a": 1}),
    ("rules_version", 1.0), ("method_version", [1]), ("provenance", [1, 2]), ("provenance", "a"), ("status", 3),
    ("status", ["completed"]), ("key", "../../../evil"), ("key", 5), ("config", []),
]  # fmt: skip


@pytest.fixture
def small(tmp_path: Path, make_results: Make) -> Path:
    return make_results(tmp_path / "small", lags=(1, 16), seeds=(0,), steps=20)


def first_cell(folder: Path) -> Path:
    return min((folder / records.CELLS).iterdir())


def rewrite(cell: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    file = cell / records.CELL_FILE
    file.write_text(json.dumps(change(json.loads(file.read_text()))))


def check_set_aside(folder: Path, cell: Path) -> None:
    results = load(folder)
    assert len(results.cells) == 6
    assert cell.name not in set(results.cells["key"])
    assert [problem.key for problem in results.problems] == [cell.name]
    assert len(scoreboard(results)) == 6


@pytest.mark.parametrize(("name", "value"), CONFIG)
def test_a_wrong_setting(small: Path, name: str, value: object) -> None:
    cell = first_cell(small)
    rewrite(cell, lambda facts: facts | {"config": facts["config"] | {name: value}})
    check_set_aside(small, cell)


@pytest.mark.parametrize(("name", "value"), FACTS)
def test_a_wrong_fact(small: Path, name: str, value: object) -> None:
    cell = first_cell(small)
    rewrite(cell, lambda facts: facts | {name: value})
    check_set_aside(small, cell)


def test_a_file_nested_too_deeply(small: Path) -> None:
    cell = first_cell(small)
    (cell / records.CELL_FILE).write_text("[" * 200_000)
    check_set_aside(small, cell)


def spoil(path: Path, column: str, values: pa.Array) -> None:
    table = pq.read_table(path)
    pq.write_table(table.set_column(table.column_names.index(column), column, values), path)


@pytest.mark.parametrize(
    ("file", "column", "value"),
    [
        (records.STEPS_FILE, "ess_ratio", "high"),
        (records.STEPS_FILE, "step", "first"),
        (records.STEPS_FILE, "step", None),
        (records.STEPS_FILE, "seconds_update", [1.0]),
        (records.EVALS_FILE, "sampled_reward", "good"),
        (records.EVALS_FILE, "step", 0.5),
        (records.EVALS_FILE, "sampled_reward", {"a": 1.0}),
        (records.LAGS_FILE, "trajectories", "all"),
    ],
)
def test_a_column_of_another_type_is_damage_of_its_cell(small: Path, file: str, column: str, value: object) -> None:
    path = first_cell(small) / file
    spoil(path, column, pa.array([value] * pq.read_table(path).num_rows))
    results = load(small)
    whole = {records.STEPS_FILE: "steps", records.EVALS_FILE: "evals", records.LAGS_FILE: "lags"}[file]
    assert set(getattr(results, whole)["key"]) == set(results.cells["key"]) - {path.parent.name}
    assert [problem.key for problem in results.problems] == [path.parent.name]
    board = scoreboard(load(small))
    assert board["damaged"].sum() == (0 if column in ("seconds_update", "trajectories") else 1), (
        "it reads what it needs"
    )
    for name in ("compare(replications=20)", "collapse", "weights", "gradients"):
        assert run(name, small).statements


def test_steps_out_of_order_are_damage(small: Path) -> None:
    path = first_cell(small) / records.STEPS_FILE
    spoil(path, "step", pa.array(range(pq.read_table(path).num_rows, 0, -1)))
    assert "out of order" in str((results := load(small)).problems or results.steps is None or results.problems[0])


def test_some_columns_are_the_same_as_those_of_the_whole_table(small: Path) -> None:
    whole, some = load(small).steps, load(small)
    for names in (("ess_ratio", "lag_max"), ("grad_norm",), ("token_ess_ratio", "seconds_wait", "lag_max")):
        wanted = whole[["key", "step", *names]].astype({"key": object})
        pd.testing.assert_frame_equal(some.step_columns(*names), wanted)


@pytest.mark.parametrize("everyone", [False, True])
def test_cells_given_up_before_their_first_update_are_rows(small: Path, everyone: bool) -> None:
    """A cell whose workers died has a status and an error, and no tables."""
    cells = sorted((small / records.CELLS).iterdir())
    for cell in cells if everyone else cells[:1]:
        rewrite(cell, lambda facts: facts | {"status": "error", "error": "the worker died 3 times", "steps_done": 0})
        for table in cell.glob("*.parquet"):
            table.unlink()
    results = load(small)
    board = scoreboard(results)
    assert board["error"].sum() == (len(cells) if everyone else 1)
    assert board["total"].sum() == len(cells)
    assert not results.problems
    for name in ("compare(replications=20)", "collapse", "weights", "gradients", "prediction"):
        assert run(name, small).statements, name
