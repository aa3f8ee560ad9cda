"""One cell that a stranger has forged is a row that says so; the others are shown as if it were whole."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import call

from vcpo_bench import records
from vcpo_bench.analysis.recorded_tables import most_rows
from vcpo_bench.analysis.results import load
from vcpo_bench.errors import DamagedResultError
from vcpo_bench.files import parquet
from vcpo_bench.files.checksums import write_sealed
from vcpo_bench.files.parquet import read_parquet, write_parquet

STEPS = 20


@pytest.fixture
def gift(tmp_path: Path, make_results: Callable[..., Path]) -> Path:
    return make_results(
        tmp_path / "gift", methods=("clip",), lags=(1,), seeds=(0, 1), steps=STEPS, controls=False, record="diagnostics"
    )


def forge(gift: Path, name: str, change: Callable[[pa.Table], pa.Table]) -> Path:
    """Change a table of the first cell and seal the cell over it."""
    cell = min((gift / "cells").iterdir())
    pq.write_table(change(pq.read_table(cell / name)), cell / name)
    write_sealed(cell / "cell.json", json.loads((cell / "cell.json").read_text()))
    return cell


def with_column(name: str, value: object) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.append_column(name, pa.array([value] * table.num_rows))


def with_text(content: bytes) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        held = pa.array([content] * table.num_rows, pa.binary()).buffers()
        texts = pa.StringArray.from_buffers(table.num_rows, held[1], held[2])
        return table.set_column(table.column_names.index("text"), "text", texts)

    return change


def many(table: pa.Table) -> pa.Table:
    return table.slice(0, 1).take(pa.array([0] * 100_000))


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("evals.parquet", with_column("step", 1), "has a column twice"),
        ("evals.parquet", many, f"has 100000 rows where its cell can have made {STEPS + 2}"),
        ("steps.parquet", many, f"has 100000 rows where its cell can have made {STEPS + 2}"),
        ("episodes.parquet", with_text(b"\xff"), "holds text in the column 'text' that is not UTF-8"),
    ],
    ids=["twice", "evals", "steps", "text"],
)
def test_it_is_named_and_the_others_are_read(
    gift: Path, name: str, change: Callable[[pa.Table], pa.Table], said: str
) -> None:
    cell = forge(gift, name, change)
    results = load(gift)
    table = getattr(results, name.removesuffix(".parquet"))
    assert set(table["key"]) == {path.name for path in (gift / "cells").iterdir() if path != cell}
    (problem,) = results.problems
    assert str(problem).startswith(f"{cell / name} {said}; its cell is left out")
    if name != "episodes.parquet":
        shown = call("show", str(gift), "--json")
        assert shown.exit_code == 0
        (row,) = json.loads(shown.stdout)
        assert (row["damaged"], row["total"]) == (1, 2)
        assert said in shown.stderr


@pytest.mark.parametrize("value", [1, 0.5, "x", [1], {"a": 1}, True, None])
def test_a_column_that_no_version_has_stays_only_if_it_holds_numbers(gift: Path, value: object) -> None:
    forge(gift, "evals.parquet", with_column("key", value))
    forge(gift, "evals.parquet", with_column("more", value))
    results = load(gift)
    assert set(results.evals["key"]) == {path.name for path in (gift / "cells").iterdir()}
    assert ("more" in results.evals) == (type(value) in (int, float))
    assert results.problems == []


def test_a_text_that_is_missing_is_empty(gift: Path) -> None:
    def change(table: pa.Table) -> pa.Table:
        return table.set_column(
            table.column_names.index("text"), "text", pa.array([None] * table.num_rows, pa.string())
        )

    cell = forge(gift, "episodes.parquet", change)
    episodes = load(gift).episodes
    assert set(episodes.loc[episodes["key"] == cell.name, "text"]) == {""}


def test_a_small_file_is_not_read_into_a_large_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, rows = tmp_path / "bomb.parquet", 200_000
    write_parquet(path, pa.table({"step": pa.repeat(0, rows)}))
    monkeypatch.setattr(parquet, "MOST_BYTES", 8 * rows)
    assert read_parquet(path).num_rows == rows
    monkeypatch.setattr(parquet, "MOST_BYTES", 8 * rows - 1)
    size = path.stat().st_size
    with pytest.raises(
        DamagedResultError, match=f"bomb.parquet has {rows} values in a file of {size} bytes, which is no"
    ):
        read_parquet(path)


def test_rows_of_a_cell_that_are_possible() -> None:
    assert most_rows(records.STEPS_FILE, 10, 32) == 12
    assert most_rows(records.LAGS_FILE, 10, 32) == most_rows(records.SAMPLES_FILE, 10, 32) == 12 * 32
    assert most_rows(records.PROBES_FOLDER, 10, 32) is None
