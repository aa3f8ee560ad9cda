from collections.abc import Callable
from pathlib import Path

import pytest

import vcpo_bench as vb
from vcpo_bench.errors import UsageError

TABLES = ("cells", "scoreboard", "steps", "evaluations", "lags", "samples", "episodes")


@pytest.fixture(scope="module")
def folder(make_results: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("api") / "small"
    return make_results(root, lags=(16,), seeds=(0, 1), steps=40, record="full")


@pytest.fixture(scope="module")
def tables(folder: Path) -> vb.Tables:
    return vb.load(folder)


@pytest.mark.parametrize("name", TABLES)
def test_every_column_of_every_table_has_a_unit_and_a_meaning(tables: vb.Tables, name: str) -> None:
    table = getattr(tables, name)
    assert len(table)
    assert set(table.attrs["units"]) == set(table.attrs["meanings"]) == set(table.columns)
    assert all(table.attrs["units"].values())
    listed = tables.units[tables.units["table"] == name]
    assert set(table.columns) <= set(listed["column"])


def test_tables_join_on_the_key(tables: vb.Tables) -> None:
    joined = tables.steps.merge(tables.cells[["key", "method"]], on="key")
    assert len(joined) == len(tables.steps) == 40 * len(tables.cells)
    assert joined.groupby("method")["ess_ratio"].median()["tis"] < 1


def test_units_are_those_of_the_columns_page(tables: vb.Tables) -> None:
    assert tables.steps.attrs["units"]["kl_mu_theta_k3"] == "nats/token"
    assert tables.cells.attrs["units"]["staleness"] == "updates"


def test_every_field_of_a_cell_has_a_unit() -> None:
    from vcpo_bench.api.units import CELL_COLUMNS
    from vcpo_bench.records.settings import SETTINGS

    assert set(SETTINGS) <= set(CELL_COLUMNS)


def test_folders_are_pooled_and_a_cell_counts_once(tables: vb.Tables, folder: Path) -> None:
    assert len(vb.load(folder, folder).cells) == len(tables.cells)


def test_it_says_what_it_holds(tables: vb.Tables, folder: Path) -> None:
    assert repr(tables) == f"<Tables of {folder}: {len(tables.cells)} cells>"
    assert tables.problems == []


def test_a_table_is_an_item_too(tables: vb.Tables) -> None:
    assert tables["steps"] is tables.steps
    assert list(dict(tables)) == list(TABLES)
    with pytest.raises(KeyError, match="unknown table 'step'; did you mean steps"):
        tables["step"]


def test_a_notebook_shows_the_scoreboard(tables: vb.Tables) -> None:
    page = tables._repr_html_()
    assert "final_reward" in page
    assert "&lt;Tables of " in page


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a results folder"):
        vb.load(tmp_path)
