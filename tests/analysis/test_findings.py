"""Findings know their rows and cells, and what every analysis says follows from the rows that it names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from statement_checks import foreign_names, lags_said, numbers_of, texts_in, unexplained

from vcpo_bench import records
from vcpo_bench.analysis.caveats import DAMAGE, caveats
from vcpo_bench.analysis.commands import ANALYSES
from vcpo_bench.analysis.comparability import ComparisonNote
from vcpo_bench.analysis.findings import NOTE, Finding, Findings, agreeing, of_methods, own_key
from vcpo_bench.analysis.monitoring.signal import all_signals
from vcpo_bench.analysis.results import Results, load

SIGNALS = all_signals()

CELLS = pd.DataFrame({"key": ["a", "b", "c"], "method": ["vcpo", "tis", "tis"], "staleness": [1, 1, 16]})
Judged = tuple[Results, dict[str, Findings]]


def test_a_finding_names_its_rows_columns_and_cells() -> None:
    table = pd.DataFrame({"method": ["vcpo", "tis"], "mean": [0.5, 0.4]})
    found = Findings({"ranking": table}, {"ranking": agreeing(CELLS, "method")})
    one = found.finding("ranking", "tis: 0.4", "ranking", table[table["mean"] < 0.5], ("method", "mean"))
    assert one == Finding("ranking", "tis: 0.4", ("b", "c"), ("method", "mean"), "ranking", (1,))
    found.statements.append(one)
    assert found.about("ranking", "pairs") == [one]
    assert found.about("pairs") == []


@pytest.mark.parametrize(
    ("rows", "columns"), [([], ("mean",)), ([0], ("mean", "median")), ([7], ("mean",))], ids=["none", "column", "row"]
)
def test_a_finding_cannot_rest_on_what_is_not_there(rows: list[int], columns: tuple[str, ...]) -> None:
    table = pd.DataFrame({"key": ["a"], "mean": [0.5]})
    found = Findings({"t": table}, {"t": own_key})
    part = pd.DataFrame({"key": ["a"] * len(rows), "mean": 0.5}, index=rows)
    with pytest.raises(ValueError, match="cannot rest on"):
        found.finding("x", "text", "t", part, columns)


def test_cells_agree_with_a_row_in_its_columns_or_in_a_method_it_names() -> None:
    rows = pd.DataFrame({"staleness": [1], "first": ["vcpo"], "second": ["tis"]})
    assert list(of_methods(CELLS, ("first", "second"), "staleness")(rows)) == ["a", "b"]
    assert list(agreeing(CELLS, "staleness")(rows)) == ["a", "b"]
    assert list(agreeing(CELLS)(rows)) == ["a", "b", "c"]
    assert list(own_key(CELLS)) == ["a", "b", "c"]


def shape(method: str, lag: int, seed: int) -> str:
    """Something of everything: collapses, rebounds, dips, nan and errors."""
    if method == "clip" and lag > 4:
        return ("nan", "collapsed", "rebound", "healthy")[seed % 4]
    if method == "clip+ess":
        return "error" if seed == 1 else "dip"
    return "collapsed" if method in ("tis", "reinforce") and lag > 4 else "healthy"


@pytest.fixture(scope="module")
def rich(make_results: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Judged:
    """Two tasks, two learning rates, both halves of VCPO, a step control, and runs that end in every way."""
    methods = ("vcpo", "vcpo(ess=off)", "vcpo(baseline=group)", "tis", "clip", "clip+ess", "tis+lr-matched")
    grid = {"methods": methods, "tasks": ("chain", "walk"), "lrs": (1e-4, 3e-4), "seeds": range(4)}
    results = load(make_results(tmp_path_factory.mktemp("rich"), shapes=shape, steps=120, **grid))
    return results, {name: ANALYSES.parse(name).run(results) for name in ANALYSES.names() if name != "prediction"}


@pytest.fixture(scope="module")
def sampled(make_results: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Judged:
    """Fewer runs, with trajectories."""
    grid = {"methods": ("vcpo", "vcpo(ess=off)", "tis", "clip+ess"), "tasks": ("chain", "walk"), "seeds": range(2)}
    folder = tmp_path_factory.mktemp("sampled")
    results = load(make_results(folder, shapes=shape, steps=120, record="full", sample_every=40, **grid))
    return results, {name: ANALYSES.parse(name).run(results) for name in ("weights", "gradients")}


@pytest.fixture(scope="module")
def predicted(make_study: Callable[..., Results], truths: dict[str, object]) -> Judged:
    """A study large enough for every number of a prediction."""
    columns = {"ess_ratio": truths["leads"], "kl_mu_theta_k3": truths["leads"], "entropy": truths["nothing"]}
    results = make_study(columns)
    return results, {"prediction": ANALYSES.parse("prediction(least_lag=0)").run(results)}


def statements(judged: Judged) -> list[tuple[Findings, Finding, pd.DataFrame]]:
    """Every statement with its analysis and the rows and columns that it names."""
    return [
        (found, one, found.tables[one.table].iloc[list(one.rows)][list(one.columns)])
        for found in judged[1].values()
        for one in found.statements
    ]


@pytest.fixture(scope="module", params=["rich", "sampled", "predicted"])
def judged(request: pytest.FixtureRequest) -> Judged:
    answer: Judged = request.getfixturevalue(request.param)
    return answer


def test_every_number_that_is_said_is_in_the_rows_or_computed_from_them(judged: Judged) -> None:
    said = statements(judged)
    assert len(said) > 10
    assert {one.text: bad for _, one, rows in said if (bad := unexplained(one.text, rows, one.table))} == {}


def test_every_name_that_is_said_is_in_the_rows(judged: Judged) -> None:
    cells = judged[0].cells
    known = {*cells["method"], *cells["task"], *(name for name in SIGNALS if "_" in name)}
    wrong = {one.text: bad for _, one, rows in statements(judged) if (bad := foreign_names(one.text, rows, known))}
    assert wrong == {}


def test_a_statement_about_a_lag_rests_on_that_lag_alone(judged: Judged) -> None:
    lag_of = judged[0].cells.set_index("key")["staleness"].astype(str)
    for _, one, rows in statements(judged):
        if said := lags_said(one.text):
            assert set(rows["staleness"].astype(str)) == said, one.text
            assert set(lag_of[list(one.keys)]) == said, one.text


def test_the_cells_behind_a_statement_are_those_of_its_methods_and_tasks(judged: Judged) -> None:
    cells = judged[0].cells.set_index("key")
    for _, one, rows in statements(judged):
        behind = cells.loc[list(one.keys)]
        assert len(behind), one.text
        methods = {
            name
            for column in ("method", "first", "second", "base", "runner_up")
            if column in rows
            for name in rows[column]
        }
        if methods and "(all)" not in methods and "control" not in rows:
            assert set(behind["method"]) <= methods, one.text
        if "task" in rows:
            assert set(behind["task"]) == set(rows["task"]), one.text


def test_the_check_of_numbers_would_notice_other_rows(rich: Judged) -> None:
    noticed = []
    for found, one, rows in statements(rich):
        others = found.tables[one.table].drop(index=list(one.rows))[list(one.columns)]
        if len(others) and numbers_of(one.text, texts_in(rows)):
            noticed.append(bool(unexplained(one.text, others.head(len(rows)), one.table)))
    assert len(noticed) > 30
    assert sum(noticed) > 0.8 * len(noticed)


def test_topics_and_texts_do_not_repeat(judged: Judged) -> None:
    for found in judged[1].values():
        texts = [one.text for one in found.statements]
        assert len(texts) == len(set(texts))
        assert all(one.topic and one.text.endswith(".") for one in found.statements)


def test_damage_names_its_cell_or_all_of_them(make_results: Callable[..., Path], tmp_path: Path) -> None:
    folder = make_results(tmp_path / "run", seeds=(0,), steps=20)
    victim = min((folder / records.CELLS).iterdir())
    (victim / records.STEPS_FILE).unlink()
    (folder / records.GRID_FILE).write_text("nonsense")
    results = load(folder)
    assert len(results.steps)
    grid, steps = caveats(results, lambda path: path.name).about(DAMAGE)
    assert grid.text.startswith("Damaged file: run/grid.json is damaged, so which cells are controls is unknown;")
    assert set(grid.keys) == set(results.cells["key"])
    assert steps.text.startswith(f"Damaged file: run/cells/{victim.name}/steps.parquet is missing;")
    assert steps.keys == (victim.name,)


def test_notes_rest_on_the_cells_they_are_about(make_results: Callable[..., Path], tmp_path: Path) -> None:
    for steps in (20, 30):
        make_results(tmp_path, methods=("tis",), seeds=(0,), steps=steps, controls=False, partial=("tis",))
    results = load(tmp_path, include_partial=True)
    found = caveats(results)
    lengths, running = found.about(NOTE)
    assert "Cells differ in steps (20, 30)" in lengths.text
    assert sorted(found.tables["cells"].loc[list(lengths.rows), "steps"].unique()) == [20, 30]
    assert "4 of 4 cells are still running" in running.text
    assert running.columns == ("key", "status", "partial")


def test_a_selection_has_only_the_notes_about_its_cells(make_results: Callable[..., Path], tmp_path: Path) -> None:
    make_results(tmp_path, methods=("tis", "vcpo"), lags=(1,), seeds=(0,), steps=20, controls=False)
    results = load(tmp_path)
    first, second = results.cells["key"]
    results.notes.append(ComparisonNote("Something about one cell.", ("status",), (first,)))
    assert len(caveats(results).statements) == 1
    assert caveats(results.select([second])).statements == []
